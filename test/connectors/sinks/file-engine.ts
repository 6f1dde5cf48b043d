// The engine's part in the tests of the file sink: it keeps each mark, opens the sink anew with it, and sends again
// what is not accounted for. And a look at everything that the sink has written.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fileSink } from '../../../connectors/sinks/file.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import {
  type OpenedSink,
  type OpeningWishes,
  openSink,
  someEvents,
} from '../../support/sink-opening.ts';

const never = new AbortController().signal;

/** Name of the active file in the directories of these tests. */
export const name = 'events.ndjson';

/** Remembers the last mark, and opens the sink anew with it, as the engine does after a restart. */
export class FakeEngine {
  readonly path: string;
  readonly #config: { readonly [setting: string]: unknown };
  readonly #wishes: OpeningWishes;
  #opened: OpenedSink | null = null;
  mark: Json | null = null;
  position = 0;

  constructor(dir: string, config: object = {}, wishes: OpeningWishes = {}) {
    this.path = join(dir, name);
    this.#config = { path: this.path, ...config };
    this.#wishes = wishes;
  }

  async open(): Promise<OpenedSink> {
    const { position, mark } = this;
    this.#opened ??= await openSink(fileSink, this.#config, { ...this.#wishes, position, mark });
    return this.#opened;
  }

  /** Sends the next `count` events. `keep: false`: the process dies before the answer is durable. */
  async send(count: number, { keep = true } = {}): Promise<Delivery> {
    const { sink, batch } = await this.open();
    const delivery = await sink.send(batch(someEvents(count, this.position)), never);
    if (delivery.outcome === 'delivered' && keep) {
      this.mark = delivery.mark ?? null;
      this.position += count;
    }
    return delivery;
  }

  /** Lets go of the sink as it is; the next `send` opens it anew. Compression is waited for. */
  async restart(): Promise<void> {
    await this.#opened?.sink.close();
    this.#opened = null;
  }
}

/** Everything that stands in the directory, finished files first, in the order of their names. */
export function written(dir: string): string {
  return readdirSync(dir)
    .filter((entry) => !entry.startsWith('.') && entry !== name && entry !== 'moved.ndjson')
    .sort()
    .map((entry) => {
      const bytes = readFileSync(join(dir, entry));
      return (entry.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
    })
    .concat(existsSync(join(dir, name)) ? [readFileSync(join(dir, name), 'utf8')] : [])
    .join('');
}

/** The uids of JSON lines, in order. */
export function uidsIn(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).metadata.uid);
}

/** The uids of consecutive test events. */
export const uids = (count: number, first = 0) =>
  someEvents(count, first).map((event) => event.uid);
