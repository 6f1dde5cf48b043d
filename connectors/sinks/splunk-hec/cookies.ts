// The cookies by which a load balancer sends what belongs together to the same indexer. What must
// stay true: a value that changes tells that another indexer answers, unless it changes with every
// answer, as some balancers and firewalls have it: then it tells nothing, and is only sent back.

/** So many changes in a row, without an acknowledgement between, and a cookie tells nothing. */
const changesMax = 3;

const cookiesMax = 50;
const lengthMax = 4096;

/** What one connection was given. */
export class Cookies {
  readonly #values = new Map<string, string>();
  readonly #changes = new Map<string, number>();

  get size(): number {
    return this.#values.size;
  }

  /** As a request brings them back. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#values.size === 0) return {};
    return { cookie: Array.from(this.#values, ([name, value]) => `${name}=${value}`).join('; ') };
  }

  /**
   * Takes the cookies of an answer; true where they tell that another indexer gives it. `isSame`:
   * the answer itself shows that it does not.
   */
  take(text: string | undefined, isSame = false): boolean {
    let isOther = false;
    for (const { name, value } of cookiesIn(text ?? '')) {
      const before = this.#values.get(name);
      if (value === null) this.#values.delete(name);
      else if (before !== undefined || this.#values.size < cookiesMax)
        this.#values.set(name, value);
      if (before === undefined || before === value) continue;
      const changes = isSame ? changesMax : (this.#changes.get(name) ?? 0);
      this.#changes.set(name, changes + 1);
      isOther ||= changes < changesMax;
    }
    return isOther;
  }

  /** Something was acknowledged: changes before that were what they looked like. */
  settle(): void {
    for (const [name, changes] of this.#changes) {
      if (changes <= changesMax) this.#changes.delete(name);
    }
  }
}

/** Name and value of each; null: it is to be forgotten. Dates hold commas, as the joints do. */
function cookiesIn(
  text: string,
): readonly { readonly name: string; readonly value: string | null }[] {
  return text.split(/,\s*(?=[^\s;,=]+=)/).flatMap((one) => {
    const [, name, value = ''] = /^\s*([^\s;,=]+)=([\x21-\x3a\x3c-\x7e]*)/.exec(one) ?? [];
    if (name === undefined || one.length > lengthMax) return [];
    const isGone = value === '' || /;\s*max-age=(0|-\d+)\s*(;|$)/i.test(one);
    return [{ name, value: isGone ? null : value }];
  });
}
