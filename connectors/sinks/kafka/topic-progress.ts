// The knowledge of a sink with exactly_once about its topic. Kafka stores the sink's position with
// the epoch of its offset. If that is further than the state (restored from a copy, damaged, lost),
// or missing, the uids of the records in the topic are read back, and those events are skipped when
// they come again. Invariant: until all of them have come again, each committed note gives their
// location, so that a crashed process passes them on to the next.

import { z } from 'zod';
import {
  type Batch,
  type Json,
  type Log,
  type Numbering,
  type PositionReach,
  presentEpoch,
  reachOf,
} from '../../../src/contracts/index.ts';
import type {
  CommittedPosition,
  Ranges,
  TopicReader,
  WrittenOffsets,
} from '../../../src/kafka/index.ts';
import { forget, withoutKnown } from '../../shared/known-events.ts';

/** Stored with the position: for each partition, the offset after the records sent by then. */
const markShape = z.object({ offsets: z.record(z.string(), z.string()) });

/** Known from the start. */
export interface TopicProgressSettings {
  readonly numbering: Numbering;
  readonly mark: Json | null;
  readonly reader: TopicReader;
  readonly log: Log;
}

/** Lives as long as the sink is open. */
export class TopicProgress {
  readonly #settings: TopicProgressSettings;
  #offsets: Readonly<Record<string, string>>;
  #looked = false;
  #unknown: Ranges = {};
  readonly #known = new Set<string>();

  constructor(settings: TopicProgressSettings) {
    this.#settings = settings;
    const mark = markShape.safeParse(settings.mark);
    this.#offsets = mark.success ? mark.data.offsets : {};
  }

  /**
   * The meaning of this commit; null: unknown. Reads the topic back if necessary: the first time,
   * or if the topic is ahead.
   */
  async reach(found: CommittedPosition | null, signal: AbortSignal): Promise<PositionReach | null> {
    const { numbering } = this.#settings;
    const note = found === null ? null : readCommittedNote(found.note);
    const place = { spool: numbering.spool, epoch: note?.epoch ?? 0, next: found?.position ?? 0 };
    const reach = found === null ? null : reachOf(place, numbering);
    // Later it is ahead only if another process has taken over the state meanwhile.
    if (this.#looked && reach?.ahead !== true) return reach;
    if (reach === null || reach.ahead) await this.#readBack(this.#offsets, signal);
    else if (note?.unknown === 'newest') await this.#readBack({}, signal);
    else if (note?.unknown !== undefined) await this.#learn(note.unknown, signal);
    this.#looked = true;
    return reach;
  }

  async #readBack(offsets: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    await this.#learn(await this.#settings.reader.rangesFrom(offsets, signal), signal);
  }

  async #learn(ranges: Ranges, signal: AbortSignal): Promise<void> {
    if (Object.keys(ranges).length === 0) return;
    this.#settings.log.info('topic_read_back', 'reading the newest records of the topic');
    for (const uid of await this.#settings.reader.uidsIn(ranges, signal)) this.#known.add(uid);
    this.#unknown = ranges;
  }

  /** The batch without the events in the topic. */
  missing(batch: Batch): Batch {
    return withoutKnown(batch, this.#known);
  }

  /** The position to commit with a batch. */
  positionAfter({ end }: Batch): CommittedPosition {
    const unknown = this.#known.size === 0 ? undefined : this.#unknown;
    const note = writtenNote({ epoch: presentEpoch(this.#settings.numbering), unknown });
    return { position: end, note };
  }

  /** A batch is in the topic; returns the mark for the state. */
  delivered(batch: Batch, written: WrittenOffsets): Json {
    forget(batch, this.#known);
    const offsets = Array.from(written, ([partition, next]) => [partition, String(next)]);
    this.#offsets = { ...this.#offsets, ...Object.fromEntries(offsets) };
    return { offsets: this.#offsets };
  }
}

// The metadata stored with a committed position: the epoch of its offset and, while the topic has
// records that the state does not know, their location.

const rangesShape = z.record(z.string(), z.tuple([z.string(), z.string()]).readonly()).readonly();
const noteShape = z.object({
  epoch: z.number(),
  unknown: z.union([rangesShape, z.literal('newest')]).optional(),
});
/** `offset.metadata.max.bytes` of the brokers is 4,096 by default. */
const noteBytesMax = 4_000;

/** `unknown` absent: none. `newest`: among the newest, in more partitions than fit a note. */
type CommittedNote = Readonly<z.output<typeof noteShape>>;

/** Parses a note; version 0.1.0 wrote none, and used the epoch 0. */
function readCommittedNote(text: string): CommittedNote {
  try {
    return noteShape.parse(JSON.parse(text));
  } catch {
    return { epoch: 0 };
  }
}

/** A note as text within the brokers' limit. */
function writtenNote(note: CommittedNote): string {
  const text = JSON.stringify(note);
  if (text.length <= noteBytesMax) return text;
  return JSON.stringify({ ...note, unknown: 'newest' } satisfies CommittedNote);
}
