// Writes a response to the connection, with the faults on the wire: cut bodies, resets, trickles, silence, endless
// lists. Timers and hung responses end with the client's connection, which close() of the sandbox cuts, so nothing
// outlives the server.
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { bytesOf, type SandboxResponse } from './answers.ts';
import type { SandboxFault } from './faults.ts';

const TRICKLE_STEPS = 20;
const HUGE_BYTES = 100 * 1024 * 1024;

/** Sends the response with its fault. Resolves when it is complete. */
export async function deliver(
  response: ServerResponse,
  answer: SandboxResponse,
  fault: SandboxFault | null,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    await send(response, answer, { fault, signal: gone.signal });
  } catch (error) {
    // The client disconnected early, as a fault intends.
    if (!gone.signal.aborted && !response.destroyed) throw error;
  }
}

interface Manner {
  readonly fault: SandboxFault | null;
  readonly signal: AbortSignal;
}

async function send(
  response: ServerResponse,
  answer: SandboxResponse,
  { fault, signal }: Manner,
): Promise<void> {
  if (fault?.kind === 'reset' || fault?.kind === 'refused') {
    response.socket?.resetAndDestroy();
    return;
  }
  if (fault?.kind === 'hang' && fault.where !== 'mid_body') return;
  if (fault?.kind === 'huge') {
    response.writeHead(200, { 'content-type': 'application/json' });
    await pipeline(Readable.from(hugeList(fault.bytes ?? HUGE_BYTES)), response);
    return;
  }
  if (fault?.kind === 'delay') await wait(fault.ms, undefined, { signal });
  const { bytes, type } = bytesOf(answer.content);
  response.writeHead(answer.status, {
    // An empty body of lines is a response all the same.
    ...((bytes.byteLength > 0 || type !== 'application/json') && { 'content-type': type }),
    'content-length': bytes.byteLength,
    ...answer.headers,
  });
  const half = bytes.subarray(0, Math.floor(bytes.byteLength / 2));
  if (fault?.kind === 'truncated') {
    response.write(half, () => response.socket?.destroy());
  } else if (fault?.kind === 'hang') {
    response.write(half);
  } else if (fault?.kind === 'slow') {
    await trickle(response, bytes, { stepMs: fault.over_ms / TRICKLE_STEPS, signal });
  } else {
    response.end(bytes);
  }
}

async function trickle(
  response: ServerResponse,
  bytes: Uint8Array,
  pace: { readonly stepMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const size = Math.max(1, Math.ceil(bytes.byteLength / TRICKLE_STEPS));
  for (let at = 0; at < bytes.byteLength; at += size) {
    response.write(bytes.subarray(at, at + size));
    await wait(pace.stepMs, undefined, { signal: pace.signal });
  }
  response.end();
}

function* hugeList(bytes: number): Generator<Buffer> {
  const record = `{"id":"huge","pad":"${'x'.repeat(64 * 1024)}"}`;
  const chunk = Buffer.from(`${record},`);
  yield Buffer.from('{"data":[');
  for (let sent = 0; sent < bytes; sent += chunk.byteLength) yield chunk;
  yield Buffer.from(`${record}],"next_cursor":null}`);
}
