// Structured header fields (RFC 9651), as far as sluice needs them: lists, dictionaries and single
// items, parsed by the RFC's own strict algorithm. A field that is malformed anywhere is malformed
// as a whole and gives null, which callers treat as absent. Invariant: a rate limit or an end of
// life is never guessed from half a header.

/** One item's value. Byte sequences and tokens keep their text; a date is epoch seconds. */
type BareItem =
  | { readonly type: 'integer' | 'decimal' | 'date'; readonly value: number }
  | { readonly type: 'string' | 'token' | 'bytes' | 'display'; readonly value: string }
  | { readonly type: 'boolean'; readonly value: boolean };

/** Parameters by key; the last of a repeated key counts. */
type Parameters = ReadonlyMap<string, BareItem>;

/** A member of a list or dictionary: an item, or an inner list of items. */
export type FieldMember = (
  | BareItem
  | { readonly type: 'list'; readonly value: readonly FieldMember[] }
) & {
  readonly parameters: Parameters;
};

/** A List field's members; null when malformed. Repeated lines are joined by ", ". */
export function parseList(text: string): readonly FieldMember[] | null {
  return whole(text, (input) => {
    const members: FieldMember[] = [];
    separated(input, () => members.push(member(input)));
    return members;
  });
}

/** The members of a Dictionary field in order; null when malformed. */
export function parseDictionary(text: string): ReadonlyMap<string, FieldMember> | null {
  return whole(text, (input) => {
    const members = new Map<string, FieldMember>();
    separated(input, () => {
      const name = input.take(/[a-z*][a-z0-9_.*-]*/y);
      const value = input.skip('=')
        ? member(input)
        : ({ type: 'boolean', value: true, parameters: parameters(input) } as const);
      members.set(name, value);
    });
    return members;
  });
}

/** The single item of an Item field; null when malformed. */
export function parseFieldItem(text: string): FieldMember | null {
  return whole(text, (input) => ({ ...bareItem(input), parameters: parameters(input) }));
}

class Malformed extends Error {}

class Input {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get ended(): boolean {
    return this.#at >= this.#text.length;
  }

  get next(): string {
    return this.#text.charAt(this.#at);
  }

  skip(mark: string): boolean {
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  /** The match of the sticky pattern here; throws if there is none. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (!match) throw new Malformed();
    this.#at += match[0].length;
    return match[0];
  }
}

function whole<T>(text: string, parse: (input: Input) => T): T | null {
  try {
    const input = new Input(text.replace(/^ +| +$/g, ''));
    const parsed = parse(input);
    return input.ended ? parsed : null;
  } catch (error) {
    if (error instanceof Malformed) return null;
    throw error;
  }
}

function separated(input: Input, one: () => void): void {
  if (input.ended) return;
  for (;;) {
    one();
    input.take(/[ \t]*/y);
    if (input.ended) return;
    input.take(/,[ \t]*/y);
    if (input.ended) throw new Malformed();
  }
}

function member(input: Input): FieldMember {
  if (!input.skip('(')) return { ...bareItem(input), parameters: parameters(input) };
  const items: FieldMember[] = [];
  for (;;) {
    input.take(/ */y);
    if (input.skip(')')) return { type: 'list', value: items, parameters: parameters(input) };
    items.push({ ...bareItem(input), parameters: parameters(input) });
    if (input.next !== ' ' && input.next !== ')') throw new Malformed();
  }
}

function parameters(input: Input): Parameters {
  const found = new Map<string, BareItem>();
  while (input.skip(';')) {
    input.take(/ */y);
    const name = input.take(/[a-z*][a-z0-9_.*-]*/y);
    const value: BareItem = input.skip('=') ? bareItem(input) : { type: 'boolean', value: true };
    found.set(name, value);
  }
  return found;
}

function bareItem(input: Input): BareItem {
  const first = input.next;
  if (/[-\d]/.test(first)) return number(input);
  if (/[A-Za-z*]/.test(first)) {
    return { type: 'token', value: input.take(/[A-Za-z*][!#$%&'*+.^_`|~\w:/-]*/y) };
  }
  if (first === '"') {
    const quoted = input.take(/"(?:[ !#-[\]-~]|\\["\\])*"/y);
    return { type: 'string', value: quoted.slice(1, -1).replace(/\\(.)/g, '$1') };
  }
  if (first === '?') return { type: 'boolean', value: input.take(/\?[01]/y) === '?1' };
  if (first === ':') {
    return { type: 'bytes', value: input.take(/:[A-Za-z0-9+/]*={0,2}:/y).slice(1, -1) };
  }
  if (input.skip('@')) {
    const date = number(input);
    if (date.type !== 'integer') throw new Malformed();
    return { type: 'date', value: date.value };
  }
  const display = input.take(/%"(?:[ !#$&-~]|%[0-9a-f]{2})*"/y).slice(2, -1);
  try {
    return { type: 'display', value: decodeURIComponent(display) };
  } catch {
    throw new Malformed();
  }
}

function number(input: Input): { readonly type: 'integer' | 'decimal'; readonly value: number } {
  const text = input.take(/-?\d+(?:\.\d*)?/y);
  const [whole = '', fraction] = text.replace('-', '').split('.');
  if (fraction === undefined) {
    if (whole.length > 15) throw new Malformed();
    // Adding 0 turns -0 into 0, as the RFC requires.
    return { type: 'integer', value: Number(text) + 0 };
  }
  if (whole.length > 12 || fraction.length < 1 || fraction.length > 3) throw new Malformed();
  return { type: 'decimal', value: Number(text) };
}
