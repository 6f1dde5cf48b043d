// Whom the program trusts at one TLS receiver: its `ca_file`, and the two authorities that take turns in it. The one that
// is not in the file at the moment is the stranger, whose certificates the program must refuse.

import { copyFileSync } from 'node:fs';
import type { Certificates } from '../support/certificates.ts';

/** The trust in one receiver. */
export class Trust {
  readonly caFile: string;
  #current: Certificates;
  #stranger: Certificates;

  constructor(caFile: string, [current, stranger]: readonly [Certificates, Certificates]) {
    this.caFile = caFile;
    this.#current = current;
    this.#stranger = stranger;
    copyFileSync(current.caFile, caFile);
  }

  /** What the receiver shows while all is well. */
  get current(): Certificates {
    return this.#current;
  }

  get stranger(): Certificates {
    return this.#stranger;
  }

  /** From the trusted authority, and no longer valid. */
  get expired(): Certificates {
    return { ...this.#current, server: this.#current.expired };
  }

  /** Puts the stranger's authority into the program's file, as an operator does; the program gets no notice. */
  replace(): void {
    [this.#current, this.#stranger] = [this.#stranger, this.#current];
    copyFileSync(this.#current.caFile, this.caFile);
  }
}
