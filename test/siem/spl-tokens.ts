// Tokens of Splunk's search and eval languages, and a reader that walks through them. It knows the part that our files use,
// and throws on anything else.

/** A token: its text without quotes, and its kind. `text` is in double quotes, `name` in single quotes. */
export interface Token {
  readonly kind: 'word' | 'text' | 'name' | 'sign';
  readonly is: string;
}

const pattern =
  /\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(>=|<=|!=|==|=|>|<|\(|\)|,|\+|\||\[|\])|([^\s"'()=<>!,|[\]+]+))/y;

/** All tokens of a text. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  const end = text.trimEnd().length;
  while (pattern.lastIndex < end) {
    const found = pattern.exec(text);
    if (found === null) throw new Error(`cannot read ${text}`);
    const [, quoted, name, sign, word = ''] = found;
    if (quoted !== undefined) tokens.push({ kind: 'text', is: quoted.replace(/\\(.)/g, '$1') });
    else if (name !== undefined) tokens.push({ kind: 'name', is: name });
    else if (sign !== undefined) tokens.push({ kind: 'sign', is: sign });
    else tokens.push({ kind: 'word', is: word });
  }
  return tokens;
}

/** Walks through tokens. */
export class Reader {
  readonly #tokens: Token[];

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  get next(): Token | undefined {
    return this.#tokens[0];
  }

  take(): Token {
    const token = this.#tokens.shift();
    if (token === undefined) throw new Error('the text ends too early');
    return token;
  }

  /** Takes the next token if it is this word or sign, without regard to case. */
  takeIf(is: string): boolean {
    const token = this.#tokens[0];
    if (token === undefined || token.kind === 'text' || token.kind === 'name') return false;
    if (token.is.toLowerCase() !== is.toLowerCase()) return false;
    this.#tokens.shift();
    return true;
  }

  expect(is: string): void {
    if (!this.takeIf(is)) throw new Error(`expected ${is}, found ${this.next?.is ?? 'the end'}`);
  }
}
