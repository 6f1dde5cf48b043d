// The engine's part in tests of sinks that query their receiver's position: it opens the sink again under an epoch of
// its own, and sends missing events again. And a reader of everything that a file sink has written.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fileSink } from '../../../connectors/sinks/file.ts';
import type { SinkDefinition } from '../../../src/contracts/definition.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { Epoch } from '../../../src/contracts/numbering.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { nextEpoch } from '../../../src/hold/epochs.ts';
import { anEvent } from '../../support/an-event.ts';
import {
  type OpenedSink,
  type OpeningWishes,
  openSink,
  someEvents,
} from '../../support/sink-opening.ts';

const never = new AbortController().signal;

/** Name of the active file in the directories of these tests. */
export const name = 'events.ndjson';

/** Undefined: the file sink. */
type EngineWishes = OpeningWishes & {
  readonly definition?: SinkDefinition;
  /** Record n belongs to company n modulo this. Undefined: all records belong to one company. */
  readonly companies?: number;
};

/** What a state directory holds, as it would be copied. */
interface CopiedState {
  readonly spoolId: string;
  readonly position: number;
  readonly epochs: readonly Epoch[];
  readonly mark: Json | null;
  /** Which record each number stands for. */
  readonly held: readonly number[];
}

/**
 * Keeps the state and queries the sink's position when it opens it again. Upstream's records are numbered from 0;
 * records that a state restored from a copy does not know are read again, the last first, so that numbers get another
 * meaning.
 */
export class FakeEngine {
  readonly path: string;
  readonly #definition: SinkDefinition;
  readonly #config: { readonly [setting: string]: unknown };
  readonly #wishes: OpeningWishes;
  readonly #companies: number | undefined;
  #opened: OpenedSink | null = null;
  #starts = 0;
  #state: CopiedState = { spoolId: 'spool', position: 0, epochs: [], mark: null, held: [] };
  /** How many records upstream has. */
  records = 0;
  /** What the sink said when it was opened last. */
  ahead = false;

  constructor(dir: string, config: object = {}, wishes: EngineWishes = {}) {
    this.path = join(dir, name);
    const { definition = fileSink, companies, ...others } = wishes;
    this.#companies = companies;
    this.#definition = definition;
    this.#config = { ...(definition === fileSink && { path: this.path }), ...config };
    this.#wishes = others;
  }

  set mark(mark: Json | null) {
    this.#state = { ...this.#state, mark };
  }

  get position(): number {
    return this.#state.position;
  }

  /** As after a process that ended before it noted its position. */
  set position(position: number) {
    this.#state = { ...this.#state, position };
  }

  /** As each start does: numbers belong to an epoch of their own, and the sink's position is queried. */
  async open(): Promise<OpenedSink> {
    if (this.#opened !== null) return this.#opened;
    const { spoolId, position, held, mark } = this.#state;
    // Epochs are distinguished by the millisecond, within which a test can start twice and no process can.
    const epochs = nextEpoch(this.#state.epochs, held.length, Date.now() + this.#starts++);
    const remember = async (mark: Json) => {
      this.mark = mark;
    };
    const wishes = { ...this.#wishes, spoolId, epochs, position, mark, remember };
    this.#opened = await openSink(this.#definition, this.#config, wishes);
    const reach = await this.#opened.sink.committed?.(never);
    this.ahead = reach?.ahead === true;
    this.#state = { ...this.#state, epochs, position: Math.max(position, reach?.position ?? 0) };
    return this.#opened;
  }

  /** Sends the next `count` events. `keep: false`: the process dies before the answer is noted. */
  async send(count: number, { keep = true } = {}): Promise<Delivery> {
    const { sink, batch } = await this.open();
    const { position } = this.#state;
    const end = position + count;
    this.#hold(end);
    const records = this.#state.held.slice(position, end);
    const events = records.map((record, i) => {
      const event = { ...anEvent({ offset: record }), offset: position + i };
      if (this.#companies === undefined) return event;
      const company = `c-${record % this.#companies}`;
      return { ...event, context: { ...event.context, company } };
    });
    const answer = sink.send(batch(events), never);
    sink.flush?.();
    const delivery = await answer;
    if (delivery.outcome === 'delivered' && keep) this.#state = { ...this.#state, position: end };
    return delivery;
  }

  #hold(end: number): void {
    const held = [...this.#state.held];
    for (let record = this.records - 1; record >= 0 && held.length < end; record -= 1) {
      if (!held.includes(record)) held.push(record);
    }
    while (held.length < end) held.push(this.records++);
    this.#state = { ...this.#state, held };
  }

  /** Sends whatever upstream has and the state does not know, some at a time. */
  async catchUp(count = 2): Promise<void> {
    await this.open();
    while (this.#state.position < this.records) {
      await this.send(Math.min(count, this.records - this.#state.position));
    }
  }

  /** Abandons the sink as it is; the next `send` opens it again. Waits for compression. */
  async restart(): Promise<void> {
    await this.#opened?.sink.close();
    this.#opened = null;
  }

  copy(): CopiedState {
    return this.#state;
  }

  /** Restores the state from a copy; undefined: the state is lost. */
  async restore(state?: CopiedState): Promise<void> {
    await this.restart();
    this.#state = state ?? {
      spoolId: crypto.randomUUID(),
      position: 0,
      epochs: [],
      mark: null,
      held: [],
    };
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
