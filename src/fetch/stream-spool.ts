// The spool as one stream has it. What the stream commits is completed on its way: the compared parts of its records if
// its source belongs to a pair, the parents that other streams take from it, and the responses that arrived before its
// pages. Invariant: all of that is durable in the transaction of the stream's own step. A class with two references,
// because each of thousands of streams has one.

import type {
  Append,
  EntityChoice,
  FetchSpool,
  HeldParents,
  Spool,
  StreamMemory,
  TrailEntry,
} from '../contracts/index.ts';
import type { Feed } from '../parents/index.ts';
import { delivers, pairedEntry, type SideOfPair } from '../succession/index.ts';
import type { StreamResponses } from './answers.ts';

/** What the spools of all streams share. */
export interface SpoolsShared {
  readonly spool: FetchSpool & Pick<Spool, 'pairs'>;
  readonly feed: Pick<Feed, 'withParents'>;
  /** The side of a pair that a source is; null: it belongs to none. */
  readonly sideOf: (source: string) => SideOfPair | null;
}

/** One stream's spool. */
export class StreamSpool implements FetchSpool {
  readonly #responses: Pick<StreamResponses, 'stream' | 'append' | 'rewinds'>;
  readonly #shared: SpoolsShared;

  constructor(
    responses: Pick<StreamResponses, 'stream' | 'append' | 'rewinds'>,
    shared: SpoolsShared,
  ) {
    this.#responses = responses;
    this.#shared = shared;
  }

  get parents(): HeldParents {
    return this.#shared.spool.parents;
  }

  get groupBytes(): number | undefined {
    return this.#shared.spool.groupBytes;
  }

  append(entry: Append): Promise<number> {
    const { stream } = this.#responses;
    // At each append, because a running stream joins a pair when another source is added to the config.
    const compared = pairedEntry(entry, stream, this.#side);
    return this.#responses.append(this.#shared.feed.withParents(compared, stream));
  }

  recall(stream: string): Promise<StreamMemory> {
    return this.#shared.spool.recall(stream);
  }

  async trail(stream: string): Promise<readonly TrailEntry[]> {
    const trail = await this.#shared.spool.trail(stream);
    this.#responses.rewinds(trail);
    return trail;
  }

  entities(stream: string, which: EntityChoice): Promise<ReadonlyMap<string, string>> {
    return this.#shared.spool.entities(stream, which);
  }

  async room(signal: AbortSignal): Promise<void> {
    const { spool } = this.#shared;
    // Records of the side that does not deliver have to wait.
    if (!delivers(this.#side, spool.pairs)) await spool.pairs?.room(signal);
    await spool.room(signal);
  }

  get #side(): SideOfPair | null {
    return this.#shared.sideOf(this.#responses.stream.source);
  }
}
