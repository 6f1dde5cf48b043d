// Framing of syslog messages on a stream: what is framed comes out of an independent splitter as it went in, whatever
// the content. Sending is tested in syslog-stream.test.ts.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Frames, framerFor } from '../../../connectors/sinks/syslog/framing.ts';
import type { EncodedLines } from '../../../src/contracts/format.ts';
import { anyText } from '../../support/any-text.ts';
import { FrameSplitter } from '../../support/syslog-frames.ts';

const vectorsFile = fileURLToPath(
  new URL('../../../../shared/data/vectors/rfc6587-framing-own.json', import.meta.url),
);

test('framing with octet_counting gives back any messages, counted in bytes', () => {
  fc.assert(
    fc.property(fc.array(anyText({ maxLength: 300 })), (texts) => {
      const messages = texts.map((text) => Buffer.from(`<134>1 ${text}`));

      const frames = framerFor('octet_counting')(linesFrom(messages));

      expect(split(frames)).toEqual(messages);
    }),
  );
});

test('framing with newline gives back any messages without LF', () => {
  const withoutLf = anyText({ maxLength: 300 }).map((s) => s.replaceAll('\n', ' '));
  fc.assert(
    fc.property(fc.array(withoutLf), fc.boolean(), (texts, gaps) => {
      const messages = texts.map((text) => Buffer.from(`<134>1 ${text}`));

      const frames = framerFor('newline')(linesFrom(messages, gaps ? 3 : 0));

      expect(split(frames)).toEqual(messages);
    }),
  );
});

test('framing with newline refuses a message that would become two', () => {
  const messages = [Buffer.from('<134>1 one'), Buffer.from('<134>1 two\n<0>1 forged')];

  expect(framerFor('newline')(linesFrom(messages))).toBeNull();
  expect(split(framerFor('octet_counting')(linesFrom(messages)))).toEqual(messages);
});

test('octet counting uses memory again only once it was released', () => {
  const framer = framerFor('octet_counting');
  const [long, short] = ['<134>1 long long long', '<134>1 short'].map((text) => Buffer.from(text));
  if (!long || !short) throw new Error('two messages');

  const first = framer(linesFrom([long]));
  const meanwhile = framer(linesFrom([short]));
  expect(split(first)).toEqual([long]);
  first?.release();
  const again = framer(linesFrom([short]));

  expect(again?.bytes.buffer).toBe(first?.bytes.buffer);
  expect(meanwhile?.bytes.buffer).not.toBe(first?.bytes.buffer);
  expect([split(meanwhile), split(again)]).toEqual([[short], [short]]);
});

test('octet counting writes every length around a power of ten without a leading zero', () => {
  const messages = [9, 10, 99, 100, 999, 1000, 9999, 10_000, 99_999, 100_000].map((length) =>
    Buffer.alloc(length, '<'),
  );

  expect(split(framerFor('octet_counting')(linesFrom(messages)))).toEqual(messages);
});

test.skipIf(!existsSync(vectorsFile))(
  'framing writes the good frames of rfc6587-framing-own.json (needs ../shared)',
  () => {
    const vectors: readonly Vector[] = JSON.parse(readFileSync(vectorsFile, 'utf8'));
    const good = vectors.filter((vector) => vector.messages !== null && vector.bytes_utf8);
    expect(good.length).toBeGreaterThan(2);

    for (const { mode, messages, bytes_utf8 } of good) {
      const lines = linesFrom((messages ?? []).map((text) => Buffer.from(text)));
      const frames = framerFor(mode === 'octet' ? 'octet_counting' : 'newline')(lines);

      expect(Buffer.from(frames?.bytes ?? []).toString()).toBe(bytes_utf8);
    }
  },
);

interface Vector {
  readonly mode: string;
  readonly bytes_utf8?: string;
  readonly messages: readonly string[] | null;
}

/** Lines as the engine encodes them, with `gap` foreign bytes between two if requested. */
function linesFrom(messages: readonly Uint8Array[], gap = 0): EncodedLines {
  const total = messages.reduce((sum, message) => sum + message.length + 1 + gap, 0);
  const bytes = new Uint8Array(total).fill(0x78);
  const starts = new Uint32Array(messages.length);
  const ends = new Uint32Array(messages.length);
  let at = 0;
  for (const [i, message] of messages.entries()) {
    bytes.set(message, at);
    starts[i] = at;
    ends[i] = at + message.length;
    bytes[at + message.length] = 0x0a;
    at += message.length + 1 + gap;
  }
  return { bytes, starts, ends, length: messages.length };
}

function split(frames: Frames | null): readonly Buffer[] {
  const splitter = new FrameSplitter();
  const found = splitter.push(frames?.bytes ?? Buffer.from('0 no frames'));
  expect(splitter.fault).toBeNull();
  expect(splitter.pending).toBe(0);
  return found.map(({ bytes }) => Buffer.from(bytes));
}
