// Builds the table of common names (vocabulary.ts) from lists of words.

import type { Accepts, Meaning, Slot } from './slots.ts';

/** Collects meanings. Of several for one name, the first that accepts the value counts. */
export class Names {
  readonly meanings = new Map<string, Meaning[]>();
  readonly containers = new Set<string>();

  add(slot: Slot, accepts: Accepts, names: string, rank = 0): this {
    names.split(' ').forEach((name, index) => {
      const known = this.meanings.get(name) ?? [];
      if (known.some((meaning) => meaning.slot === slot)) return;
      this.meanings.set(name, [...known, { slot, accepts, rank: rank + index }]);
    });
    return this;
  }

  /** Adds names whose members are searched too. */
  contain(names: string): void {
    for (const name of names.split(' ')) this.containers.add(name);
  }

  /**
   * Adds each suffix after each prefix, and each prefix as a container; `-` is the prefix itself.
   */
  cross(prefixes: string, suffixes: string, slot: Slot, accepts: Accepts = 'text', rank = 0): this {
    this.contain(prefixes);
    const names = prefixes
      .split(' ')
      .flatMap((prefix) =>
        suffixes.split(' ').map((suffix) => (suffix === '-' ? prefix : prefix + suffix)),
      );
    return this.add(slot, accepts, names.join(' '), rank);
  }
}
