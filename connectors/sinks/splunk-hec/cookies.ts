// The cookies by which a load balancer routes related requests to the same indexer. Invariant: a
// changed value means that another indexer responds, unless it changes with every response, as with
// some balancers and firewalls: that cookie means nothing, and is only sent back.

/**
 * After this many changes in a row without an acknowledgement in between, a cookie means nothing.
 */
const changesMax = 3;

const cookiesMax = 50;
const lengthMax = 4096;

/** The cookies of one connection. */
export class Cookies {
  readonly #values = new Map<string, string>();
  readonly #changes = new Map<string, number>();

  get size(): number {
    return this.#values.size;
  }

  /** As request headers. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#values.size === 0) return {};
    return { cookie: Array.from(this.#values, ([name, value]) => `${name}=${value}`).join('; ') };
  }

  /**
   * Stores the cookies of a response; true if they show another indexer. `isSame`: the response
   * itself shows the same indexer.
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

  /** An acknowledgement arrived: changes before it really were other indexers. */
  settle(): void {
    for (const [name, changes] of this.#changes) {
      if (changes <= changesMax) this.#changes.delete(name);
    }
  }
}

/** Name and value of each; null: delete it. Dates contain commas, and so do the separators. */
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
