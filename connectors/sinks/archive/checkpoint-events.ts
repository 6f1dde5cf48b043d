// Reports the archive's checkpoints to the other sinks, so that each of them is a witness: an
// attacker who cuts the archive's end or rewrites its history cannot change the checkpoints that a
// SIEM has received. A checkpoint is reported when signed, at most one per interval; of several,
// the newest.

import type { Published } from '../../../src/archive/write.ts';
import type { SinkOpening } from '../../../src/contracts/index.ts';

/** Reports one archive's checkpoints. */
export class CheckpointEvents {
  readonly #opening: Pick<SinkOpening, 'name' | 'report' | 'tools'>;
  readonly #everyMs: number;
  #toldAt = Number.NEGATIVE_INFINITY;
  /** Not reported yet. */
  #newest: Published | null = null;
  /** Ends the wait until it is reported. */
  #later: AbortController | null = null;

  constructor(opening: Pick<SinkOpening, 'name' | 'report' | 'tools'>, everyMs: number) {
    this.#opening = opening;
    this.#everyMs = everyMs;
  }

  /** A checkpoint was signed. Resolves when it is reported, or waits for its time. */
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

  /** Reports the waiting checkpoint. */
  async finish(): Promise<void> {
    const { name, report, tools } = this.#opening;
    this.#later?.abort(new Error('reported'));
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
