// Splits a byte stream into syslog frames as RFC 6587 has them, deciding frame by frame like most
// servers do: a digit begins octet counting, anything else runs to the next LF. What is neither ends
// the stream: nothing after it can be trusted.

export type Framing = 'octet_counting' | 'lf';

export interface SplitFrame {
  readonly framing: Framing;
  /** Without the framing. */
  readonly bytes: Buffer;
}

/** Takes one connection's bytes in pieces of any size. */
export class FrameSplitter {
  #rest: Buffer = Buffer.alloc(0);
  #fault: string | null = null;

  /** The frames that are complete with these bytes; none once there is a fault. */
  push(bytes: Uint8Array): readonly SplitFrame[] {
    if (this.#fault !== null) return [];
    let stream = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const frames: SplitFrame[] = [];
    for (let next = nextFrame(stream); next.kind !== 'more'; next = nextFrame(stream)) {
      if (next.kind === 'fault') {
        this.#fault = next.fault;
        break;
      }
      frames.push(next.frame);
      stream = stream.subarray(next.length);
    }
    this.#rest = stream;
    return frames;
  }

  /** Bytes of a frame that has begun and not ended. */
  get pending(): number {
    return this.#rest.length;
  }

  /** Why the stream stopped being frames, or null. */
  get fault(): string | null {
    return this.#fault;
  }
}

type Next =
  | { readonly kind: 'frame'; readonly frame: SplitFrame; readonly length: number }
  | { readonly kind: 'more' }
  | { readonly kind: 'fault'; readonly fault: string };

function nextFrame(stream: Buffer): Next {
  const first = stream[0];
  if (first === undefined) return { kind: 'more' };
  const isDigit = first >= 0x30 && first <= 0x39;
  if (isDigit) return nextCounted(stream);
  const end = stream.indexOf('\n');
  if (end === -1) return { kind: 'more' };
  return frameOf('lf', stream.subarray(0, end), end + 1);
}

function nextCounted(stream: Buffer): Next {
  const start = stream.toString('latin1', 0, 11);
  const count = /^([1-9][0-9]{0,9}) /.exec(start)?.[1];
  if (count === undefined) {
    if (/^[1-9][0-9]*$/.test(start) && stream.length <= 10) return { kind: 'more' };
    return { kind: 'fault', fault: `a frame begins with ${JSON.stringify(start)} as its length` };
  }
  const begin = count.length + 1;
  const length = begin + Number(count);
  if (stream.length < length) return { kind: 'more' };
  return frameOf('octet_counting', stream.subarray(begin, length), length);
}

function frameOf(framing: Framing, bytes: Buffer, length: number): Next {
  return { kind: 'frame', frame: { framing, bytes }, length };
}
