// The texts that the lint reads: prose of a page, strings and comments of TypeScript, descriptions of alerts.

/** A text with its line, from 1. */
export interface Text {
  readonly line: number;
  readonly text: string;
}

/** The parts of a TypeScript file that people read. */
export interface Parts {
  readonly strings: readonly Text[];
  readonly comments: readonly Text[];
  /** Names of tests and of their groups; they are in `strings` as well. */
  readonly tests: readonly Text[];
  readonly identifiers: ReadonlySet<string>;
}

/** A page without code, links' addresses, comments and anchors; its lines keep their numbers. */
export function proseOf(page: string): string {
  const blank = (part: string) => part.replace(/[^\n]/g, ' ');
  return page
    .replace(/^```[\s\S]*?^```$/gm, blank)
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/`[^`\n]*`/g, 'CODE')
    .replace(/\]\([^)\n]*\)/g, ']')
    .replace(/https?:\/\/\S+/g, 'LINK');
}

/** The comments of a file in which `#` begins one; its lines keep their numbers. */
export function hashCommentsOf(text: string): string {
  return text
    .split('\n')
    .map((line) => /(?:^|\s)#(?!!)(.*)$/.exec(line)?.[1] ?? '')
    .join('\n');
}

/** The visible text of an HTML page, with labels and placeholders; its lines keep their numbers. */
export function proseOfHtml(page: string): string {
  const labels = /\b(?:aria-label|placeholder|title|alt)="([^"]*)"/g;
  return page.replace(
    /<[^>]*>/g,
    (tag) => ` ${Array.from(tag.matchAll(labels), ([, label]) => label).join(' ')} `,
  );
}

/** How often a word is in a prose, per 1,000 words. */
export function densityOf(prose: string, word: string): number {
  const words = prose.toLowerCase().match(/[a-z][a-z’'-]*/g) ?? [];
  const count = words.filter((one) => one === word).length;
  return words.length === 0 ? 0 : (count * 1000) / words.length;
}

// The first argument of `test`, `it`, `describe`, `test.skipIf(…)` or `test.each(…)`.
const beforeTestName = /(?:\b(?:test|it|describe)(?:\.\w+)*|\))\(\s*$/;

// Comments, the three kinds of strings, regular expressions where an expression may begin, and names. Templates are
// read up to the next `${`; the part after its `}` is found by the depth of braces.
const token =
  /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<quoted>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(?<regex>(?<=[=(,:[!&|?{};]\s*)\/(?![*/])(?:[^\\/\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*)|(?<name>[A-Za-z_$#][\w$]*)|(?<mark>[`{}])|\n/g;

/** The parts of a TypeScript file. Import paths are no strings here. */
export function partsOfFile(source: string): Parts {
  const strings: Text[] = [];
  const comments: Text[] = [];
  const tests: Text[] = [];
  const identifiers = new Set<string>();
  const braces: number[] = [];
  let line = 1;
  let at = 0;
  const template = (isTestName: boolean) => {
    const part = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y;
    part.lastIndex = at;
    const [text = ''] = part.exec(source) ?? [];
    strings.push({ line, text: text.replaceAll('\\n', ' ') });
    if (isTestName) tests.push({ line, text });
    line += text.split('\n').length - 1;
    at += text.length;
    if (source.startsWith('${', at)) braces.push(0);
    at += source[at] === '$' ? 2 : 1;
  };
  for (;;) {
    token.lastIndex = at;
    const found = token.exec(source);
    if (found === null) return { strings, comments, tests, identifiers };
    const [text] = found;
    const { comment, quoted, name, mark } = found.groups ?? {};
    at = token.lastIndex;
    if (comment !== undefined) comments.push({ line, text });
    const isTestName = beforeTestName.test(
      source.slice(Math.max(0, found.index - 80), found.index),
    );
    if (quoted !== undefined) strings.push({ line, text: text.slice(1, -1) });
    if (quoted !== undefined && isTestName) tests.push({ line, text: text.slice(1, -1) });
    // `Math.round` is not ours to name.
    const isBuiltIn = source.startsWith('Math.', found.index - 'Math.'.length);
    if (name !== undefined && !isBuiltIn) identifiers.add(name);
    line += text.split('\n').length - 1;
    const depth = braces.at(-1);
    if (mark === '`') template(isTestName);
    else if (mark === '}' && depth === 0) {
      braces.pop();
      template(false);
    } else if (mark !== undefined && depth !== undefined) {
      braces[braces.length - 1] = depth + (mark === '{' ? 1 : -1);
    }
  }
}
