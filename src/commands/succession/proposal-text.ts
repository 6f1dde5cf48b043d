// A proposal as YAML 1.2 that any parser reads: the whole config as written, with successors first, each after its
// questions and notes. Invariant: text from a file or an upstream ends no comment and no value, since each is quoted or
// made one line.

import type { Config } from '../../config/index.ts';
import { isObject, type Json, type JsonObject } from '../../contracts/index.ts';
import { cleanText } from '../../tools/index.ts';
import type { Proposal, Proposals } from './proposal.ts';

const commentMax = 400;

/** The lines of the proposal; `unread`: references without a value, so nothing was requested. */
export function* proposalText(
  config: Config,
  proposals: Proposals,
  unread: readonly string[] = [],
): Generator<string> {
  const { ending, into, sources, done } = proposals;
  if (into === null) {
    yield* nothingText(config, ending, done);
    return;
  }
  yield comment(`${config.file}, with a successor for each source of an upstream that ends.`);
  yield comment('New blocks come first in their section. Copy them into the config, or use this');
  yield comment(
    'file as the config: comments and plain-text secrets of the original are not in it.',
  );
  yield comment('A value null is open: set it, then run: sluice check -c FILE --connect');
  if (unread.length > 0) {
    const names = unread.join(', ');
    yield comment(`Not compared with records, because these have no value here: ${names}`);
  }
  for (const [name, reason] of ending) yield comment(`upstreams.${name} ends: ${reason}`);
  for (const [of, name] of done) yield comment(`sources.${of} has a successor: ${name}`);
  const kept = isObject(config.kept) ? config.kept : {};
  for (const [section, value] of Object.entries(kept)) {
    yield '';
    if (section === 'upstreams') yield* upstreamsText(value as JsonObject, into);
    else if (section === 'sources') yield* sourcesText(value as JsonObject, sources);
    else yield* member(section, value ?? null, '');
  }
}

function* nothingText(
  { file, upstreams }: Config,
  ending: Proposals['ending'],
  done: Proposals['done'],
): Generator<string> {
  if (ending.size === 0) {
    const names = Object.keys(upstreams).join(', ');
    yield comment(`${file}: no upstream ends (${names}), so no source needs a successor.`);
    return;
  }
  yield comment(`${file}: each source of an upstream that ends has a successor.`);
  for (const [of, name] of done) yield comment(`sources.${of}: ${name}`);
}

function* upstreamsText(
  upstreams: JsonObject,
  into: NonNullable<Proposals['into']>,
): Generator<string> {
  yield 'upstreams:';
  const { name, block, isNew, notes } = into;
  if (isNew || notes.length > 0) {
    if (isNew) yield comment('new: the API that sources move to', '  ');
    for (const note of notes) yield comment(note, '  ');
    yield* member(name, block, '  ');
  }
  for (const [key, value] of Object.entries(upstreams)) {
    if (key === name && notes.length > 0) continue;
    yield* member(key, value ?? null, '  ');
  }
}

function* sourcesText(sources: JsonObject, proposals: readonly Proposal[]): Generator<string> {
  yield 'sources:';
  const asked = new Set<string>();
  for (const { of, successor, questions, notes } of proposals) {
    const title = successor === null ? `no successor proposed for ${of}` : `new: succeeds ${of}`;
    yield comment(title, '  ');
    for (const note of notes) yield comment(note, '  ');
    for (const question of questions) {
      if (!asked.has(question)) yield comment(`question for the vendor: ${question}`, '  ');
      asked.add(question);
    }
    if (successor !== null) yield* member(successor.name, successor.block, '  ');
    yield '';
  }
  for (const [key, value] of Object.entries(sources)) yield* member(key, value ?? null, '  ');
}

/** One member of a mapping: block style above, flow style where all below it is short. */
function* member(key: string, value: Json, indent: string): Generator<string> {
  const flow = flowOf(value);
  const hasOpen = isObject(value) && value.path === null;
  const isShort = indent.length + key.length + flow.length < 90 && indent.length >= 2 && !hasOpen;
  if (!isObject(value) || Object.keys(value).length === 0 || isShort) {
    const open = isOpen(key, value) ? ' # open: see the questions above' : '';
    yield `${indent}${scalar(key)}: ${flow}${open}`;
    return;
  }
  yield `${indent}${scalar(key)}:`;
  for (const [inner, one] of Object.entries(value))
    yield* member(inner, one ?? null, `${indent}  `);
}

function isOpen(key: string, value: Json): boolean {
  return key === 'path' && value === null;
}

function flowOf(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((one: Json) => flowOf(one)).join(', ')}]`;
  if (!isObject(value)) return typeof value === 'string' ? scalar(value) : JSON.stringify(value);
  const members = Object.entries(value).map(
    ([key, one]) => `${scalar(key)}: ${flowOf(one ?? null)}`,
  );
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

/** Plain where every parser of YAML, also of 1.1, reads the same text; else in JSON's quotes. */
function scalar(text: string): string {
  const isPlain =
    /^[A-Za-z][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain || /^\/[\w./-]*$/.test(text) ? text : JSON.stringify(text);
}

function comment(text: string, indent = ''): string {
  return `${indent}# ${cleanText(text, commentMax)}`;
}
