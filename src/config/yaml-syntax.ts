// Where YAML and a config differ: references, which YAML would cut, are shielded from its parser; and the errors of a
// text that is not YAML are reported in an author's words at the location of the mistake, which is rarely where the
// parser fails: an unclosed quote continues to the end of the file.

import { type Document, type ErrorCode, visit, type YAMLError } from 'yaml';
import type { Flaws } from './flaws.ts';

// The library's own messages quote the text, which may be a misplaced secret.
const syntaxMessages: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias (*name) must be alone, without anchor or tag',
  BAD_ALIAS: 'an alias or anchor has no usable name',
  BAD_COLLECTION_TYPE: 'the tag does not fit the value after it',
  BAD_DIRECTIVE: 'a line beginning with % is a directive, and this is none that is known',
  BAD_DQ_ESCAPE:
    'unknown escape in double quotes; write \\\\ for a backslash, or use single quotes',
  BAD_INDENT: 'the indentation does not fit, or a bracket or quote before it is not closed',
  BAD_PROP_ORDER: 'write anchors and tags after the indicator',
  BAD_SCALAR_START: 'a value cannot begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second ": " in one line; put a text that holds one in quotes',
  BLOCK_IN_FLOW:
    'a second ": " within [ ] or { }: a comma is missing, or a text that holds one needs quotes',
  DUPLICATE_KEY: 'this key is here a second time',
  IMPOSSIBLE: 'this cannot be read as YAML',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR:
    'something is missing here: a colon, a comma, a blank, or a closing quote or bracket',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line, with a colon after it',
  MULTIPLE_ANCHORS: 'a value has one anchor at most',
  MULTIPLE_DOCS: 'a config is one document; nothing may follow another ---',
  MULTIPLE_TAGS: 'a value has one tag at most',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAB_AS_INDENT: 'indentation is made of blanks, not tabs',
  TAG_RESOLVE_FAILED:
    'unknown tag; secrets are written ${env:NAME}, ${file:/path} or ${exec:COMMAND}, without !',
  UNEXPECTED_TOKEN: 'unexpected here; texts that hold { } [ ] , # : or quotes are put in quotes',
};

/** True if the tree is usable for further checks. */
export function reportSyntax(document: Document.Parsed, text: string, flaws: Flaws) {
  let readable = true;
  let lineBefore = 0;
  for (const error of [...document.errors, ...document.warnings]) {
    // One mistake causes a chain of errors: the first of a line is the one to repair. Once the parser is lost,
    // unexpected tokens further on have no meaning.
    const { at, message } = slipOf(error, document, text);
    const { line } = flaws.lines.linePos(at);
    const follows = line === lineBefore || (!readable && error.code === 'UNEXPECTED_TOKEN');
    if (!follows) flaws.add(at, [], message);
    lineBefore = line;
    if (error.code !== 'TAG_RESOLVE_FAILED') readable = false;
  }
  return readable;
}

/** The location of the mistake, which is rarely where the parser fails. */
function slipOf({ code, pos, message }: YAMLError, document: Document.Parsed, text: string) {
  const open = code === 'RESOURCE_EXHAUSTION' ? null : unclosedBefore(pos[0], document, text);
  if (open !== null) return { at: open, message: `this ${text[open]} is not closed` };
  const deeper = deeperLine(pos[0], document, text);
  if (deeper !== null) {
    return { at: deeper, message: 'this line is indented deeper than its neighbours' };
  }
  if (message.startsWith('A block sequence')) {
    return { at: pos[0], message: 'a list cannot be among keys; indent it below one of them' };
  }
  return { at: pos[0], message: syntaxMessages[code] };
}

/** The start of the innermost bracket or quote that is never closed; null: none. */
function unclosedBefore(end: number, document: Document.Parsed, text: string): number | null {
  let begin: number | null = null;
  visit(document, {
    Node(_, node) {
      const { range } = node;
      if (!range || range[1] !== end) return;
      const closing = { '[': ']', '{': '}', '"': '"', "'": "'" }[text[range[0]] ?? ''];
      const isClosed = range[1] - range[0] > 1 && text[range[1] - 1] === closing;
      if (closing !== undefined && !isClosed) begin = Math.max(begin ?? 0, range[0]);
    },
  });
  return begin;
}

/** The start of a line that makes a mapping of the value above it; null: none. */
function deeperLine(from: number, { errors }: Document.Parsed, text: string): number | null {
  const here = errors.filter(({ pos }) => pos[0] === from);
  const lines = here.find(({ code }) => code === 'MULTILINE_IMPLICIT_KEY');
  if (lines === undefined || !here.some(({ code }) => code === 'BLOCK_AS_IMPLICIT_KEY'))
    return null;
  const begin = text.lastIndexOf('\n', lines.pos[1] - 1) + 1;
  return begin + text.slice(begin).search(/\S/);
}

/** One reference, or an escaped one, in the form allowed without quotes. Only a command may contain quotes. */
const inText =
  /\$+\{(?:[^{}"'\\\r\n]*|exec:(?:[^{}"'\\\r\n]|"[^"\\\r\n]*"|'[^'\\\r\n]+'(?!'))*)\}/g;
const shieldBase = 0xdc00;

/**
 * Replaces each character of a reference by a lone low surrogate, which YAML ignores and no well-formed text contains.
 * Offsets stay the same. Without this, `{ id: ${env:ID} }` would begin a mapping at the second brace.
 */
export function shield(text: string): string {
  return text.replace(inText, (reference) =>
    Array.from({ length: reference.length }, (_, i) => {
      const unit = reference.charCodeAt(i);
      return unit < 0x80 ? String.fromCharCode(shieldBase + unit) : reference.charAt(i);
    }).join(''),
  );
}

/** Undoes `shield`. */
export function unshield(text: string): string {
  if (text.isWellFormed()) return text;
  return text.replace(/(?<![\ud800-\udbff])[\udc00-\udc7f]/g, (unit) =>
    String.fromCharCode(unit.charCodeAt(0) - shieldBase),
  );
}
