// Selects the pages to transcode (transcode/), with one transcoder per stream and format, and
// counts the transcoded records. A page qualifies if the sink's format supports copying and its
// normaliser reports the values that it inspects.

import type { Format } from '../contracts/index.ts';
import { Credit, type TranscodeCounts, Transcoder } from '../transcode/index.ts';
import type { DecodedPage } from './held-event.ts';
import type { Selection } from './route.ts';

/**
 * Maximum number of streams and formats with learned templates; the least recently used are
 * dropped.
 */
const transcodersMax = 64;

/** Transcoded records of a source, and the reasons for the others. */
export interface TranscodedOf extends Readonly<TranscodeCounts> {
  readonly source: string;
}

/** All transcoders of the sinks that read one spool. */
export class Transcoders {
  readonly #isOn: boolean;
  readonly #known = new Map<string, Transcoder>();
  readonly #credit = new Credit();
  readonly #tallies = new Map<string, TranscodeCounts>();

  constructor(isOn: boolean) {
    this.#isOn = isOn;
  }

  /** Since the start, ordered by source name. */
  get transcoded(): readonly TranscodedOf[] {
    return Array.from(this.#tallies, ([source, tally]) => ({ source, ...tally })).sort((a, b) =>
      a.source < b.source ? -1 : 1,
    );
  }

  /** Returns the writer of this page's lines; null: none. */
  begin(
    { held, normalise }: DecodedPage,
    { copying }: Pick<Format, 'copying'>,
    { key: selectionKey, choosing, masks }: Selection,
    formatKey: string,
  ): Transcoder | null {
    const { answer: _, ...context } = held.context;
    const isCopied = copying !== undefined && normalise.attention !== undefined;
    // A masked value must not be copied from the record, nor may its copies in other texts.
    if (!this.#isOn || !isCopied || masks === true) return null;
    if (context.delivery !== undefined) return null;
    const tally = this.#tallies.getOrInsertComputed(context.source, () => ({
      written: 0,
      unknown: 0,
      refused: 0,
    }));
    const key = JSON.stringify([formatKey, selectionKey, { ...context, fetchedAt: 0 }]);
    let transcoder = this.#known.get(key);
    // After a config reload records may be normalised differently.
    if (transcoder?.normalise !== normalise) {
      transcoder = new Transcoder({ normalise, copying, choosing, context }, tally, this.#credit);
    }
    this.#known.delete(key);
    this.#known.set(key, transcoder);
    const [oldest = key] = this.#known.keys();
    if (this.#known.size > transcodersMax) this.#known.delete(oldest);
    return transcoder;
  }
}
