// Lets a transcoder rest while copying does not pay: a stream whose records are never alike would
// otherwise pay for each look-up that fails. Invariants: a transcoder that rests tries again after
// a bounded number of records; rests count records, so that small pages are judged like large ones.

/** Records that are tried before the share of written ones is judged. */
const judgedMin = 1024;
/** A failed look-up costs about an eighth of the ordinary way. */
const paysFrom = 1 / 8;
const restMin = 4096;
const restMax = 65_536;

/** Judges how many of the tried records were written, and how long to rest. */
export class Rest {
  #tried = 0;
  #written = 0;
  #next = restMin;
  /** Number of records that are still left to the format. */
  #left = 0;

  get isOn(): boolean {
    return this.#left > 0;
  }

  /** A page ends, of whose records so many were tried and so many written. */
  count(tried: number, written: number): void {
    if (this.#left > 0) {
      this.#left -= tried;
      return;
    }
    this.#tried += tried;
    this.#written += written;
    if (this.#tried < judgedMin) return;
    const pays = this.#written >= this.#tried * paysFrom;
    this.#left = pays ? 0 : this.#next;
    this.#next = pays ? restMin : Math.min(restMax, this.#next * 2);
    this.#tried = 0;
    this.#written = 0;
  }
}
