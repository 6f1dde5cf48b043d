// Tells the other sinks of the archive's checkpoints, so that each of them is a witness: whoever
// cuts the archive's end or writes another history cannot change what a SIEM was told. A checkpoint
// is told as it is signed, and at most one in the time between two; of several the newest.

import type { Published } from '../../../src/archive/log.ts';
import type { SinkOpening } from '../../../src/contracts/sink.ts';

/** Tells of one archive's checkpoints. */
export class CheckpointEvents {
  readonly #opening: Pick<SinkOpening, 'name' | 'tell' | 'tools'>;
  readonly #everyMs: number;
  #toldAt = Number.NEGATIVE_INFINITY;
  /** Not told yet. */
  #newest: Published | null = null;
  /** Ends the wait until that is told. */
  #later: AbortController | null = null;

  constructor(opening: Pick<SinkOpening, 'name' | 'tell' | 'tools'>, everyMs: number) {
    this.#opening = opening;
    this.#everyMs = everyMs;
  }

  /** A checkpoint was signed. Resolves when it is told, or waits for its time. */
  async signed(checkpoint: Published): Promise<void> {
    const { clock } = this.#opening.tools;
    this.#newest = checkpoint;
    const waitMs = this.#toldAt + this.#everyMs - clock.monotonic();
    if (waitMs <= 0) await this.finish();
    else if (this.#later === null) {
      this.#later = new AbortController();
      clock.sleep(waitMs, this.#later.signal).then(
        () => this.finish(),
        () => undefined,
      );
    }
  }

  /** Tells what is not told yet. */
  async finish(): Promise<void> {
    const { name, tell: report, tools } = this.#opening;
    this.#later?.abort(new Error('told'));
    this.#later = null;
    const newest = this.#newest;
    if (newest === null) return;
    this.#newest = null;
    this.#toldAt = tools.clock.monotonic();
    const { size, root, note } = newest;
    await report({
      condition: 'archive.checkpoint',
      message: `the archive ${name} has ${size} entries under a signed checkpoint`,
      details: { size, root, note: Buffer.from(note).toString('utf8') },
      about: `${size} ${root}`,
    });
  }
}
