// Which pages are transcoded (transcode/), each stream and format by a transcoder of its own, and
// how many of their records were. A page is where its records go to the sink in a
// format that can be put together by copying, and from a normaliser that tells what it looks at.

import type { Format } from '../contracts/format.ts';
import { Credit, type TranscodeCounts, Transcoder } from '../transcode/transcoder.ts';
import type { DecodedPage } from './held-event.ts';
import type { Selection } from './route.ts';

/** What is learned of so many streams and formats is remembered, those used last. */
const transcodersMax = 64;

/** How many records of a source were written so, and why the others were not. */
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

  /** Since the start, in the order of the sources' names. */
  get transcoded(): readonly TranscodedOf[] {
    return Array.from(this.#tallies, ([source, tally]) => ({ source, ...tally })).sort((a, b) =>
      a.source < b.source ? -1 : 1,
    );
  }

  /** What writes this page's lines where it can, at its beginning; null: nothing does. */
  begin(
    { held, normalise }: DecodedPage,
    { copying }: Pick<Format, 'copying'>,
    { key: selectionKey, choosing }: Selection,
    formatKey: string,
  ): Transcoder | null {
    const { answer: _, ...context } = held.context;
    const isCopied = copying !== undefined && normalise.attention !== undefined;
    if (!this.#isOn || !isCopied || context.delivery !== undefined) return null;
    const tally = this.#tallies.get(context.source) ?? { written: 0, unknown: 0, refused: 0 };
    this.#tallies.set(context.source, tally);
    const key = JSON.stringify([formatKey, selectionKey, { ...context, fetchedAt: 0 }]);
    let transcoder = this.#known.get(key);
    // Once the config is read again, records may be read differently.
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
