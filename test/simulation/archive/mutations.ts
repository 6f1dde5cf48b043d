// The flaws that the attacked archive must expose: for each of the writer's reads of the store, a writer that believes
// the result; and for each rule of removals one that violates it.

import type { Mutation } from '../mutations.ts';

const of = 'archive';
const src = 'src/archive';

/** All of them. */
export const ofArchive: readonly Mutation[] = [
  {
    ...{ of, file: `${src}/recovery.ts` },
    what: 'the checkpoint of the store is believed without a signature',
    from: 'parseCheckpoint(openNote(found.body, [verifier]).text);',
    to: 'parseCheckpoint(parseNote(found.body).text);',
  },
  {
    ...{ of, file: `${src}/recovery.ts` },
    what: 'archive.json is believed whatever the log names',
    from: 'if (heads.archive !== null && heads.archive !== archive) {',
    to: "if (heads.archive === '') {",
  },
  {
    ...{ of, file: `${src}/recovery.ts` },
    what: 'a log is resumed that is shorter than a kept checkpoint',
    from: "if (copy === '') return;",
    to: 'if (copy.length >= 0) return;',
  },
  {
    ...{ of, file: `${src}/recovery.ts` },
    what: 'tiles are believed at a restart',
    from: 'if (stored !== null && !tree.root.equals(stored.root)) {',
    to: 'if (stored !== null && tree.size < 0) {',
  },
  {
    ...{ of, file: `${src}/recovery.ts` },
    what: 'entries beyond the checkpoint are signed as they are found',
    from: "if (known !== null && known.size >= size && tree.root.toString('hex') !== known.root) {",
    to: 'if (known !== null && known.size < 0) {',
  },
  {
    ...{ of, file: `${src}/recovery.ts` },
    // It takes an older store, a lost state that resumes from it, and the state before: writer.test.ts has them in a row.
    what: 'a log that does not begin with what the state has signed is resumed',
    from: "if (root.toString('hex') !== known.root) {",
    to: "if (root.toString('hex') === '') {",
    isRare: true,
  },
  {
    ...{ of, file: `${src}/growing-tree.ts` },
    what: 'the last bundle is believed at a restart',
    from: 'if (tree.#entries.some((entry, i) => leaves[i]?.equals(leafHash(entry)) !== true)) {',
    to: 'if (tree.#entries.length + leaves.length < 0) {',
  },
  {
    ...{ of, file: `${src}/proven-reader.ts` },
    what: 'entries are believed without their tile',
    from: 'if (wrong < 0) return',
    to: 'if (wrong < tileWidth) return',
  },
  {
    ...{ of, file: `${src}/proven-reader.ts` },
    what: 'tiles are believed without the root',
    from: 'if ((await rootAt(size, hashes)).equals(root)) return edge;',
    to: 'if ((await rootAt(size, hashes)).length === root.length) return edge;',
  },
  {
    ...{ of, file: `${src}/holds.ts` },
    what: 'the file of a hold changes it after it was entered',
    from: 'const { from, to } = isActive ? known : hold;',
    to: 'const { from, to } = hold;',
  },
  {
    ...{ of, file: `${src}/holds.ts` },
    what: 'the release of a hold needs no signature',
    from: 'const authority = isRelease ? this.#authorityOf(hold, log, now) : {};',
    to: 'const authority = isRelease && now < 0 ? this.#authorityOf(hold, log, now) : {};',
  },
  {
    ...{ of, file: `${src}/authority.ts` },
    what: 'a request is carried out whatever was signed',
    from: "if (opened.text !== text) throw new SyntaxError('the request is not the one that was signed');",
    to: '',
  },
  {
    ...{ of, file: `${src}/authority.ts` },
    what: 'an unsigned request is carried out',
    from: 'if (rules.acceptsUnsigned) return {};',
    to: 'if (kind.length > 0) return {};',
  },
  {
    ...{ of, file: `${src}/authority.ts` },
    what: 'a request is carried out again',
    from: 'if (heads.done[request] !== undefined) {',
    to: 'if (heads.done[request] === 0) {',
  },
  {
    ...{ of, file: `${src}/segments.ts` },
    what: 'a body is believed',
    from: "if (bytes.length !== body.bytes || hash('sha256', bytes, 'hex') !== body.sha256) {",
    to: 'if (bytes.length < 0) {',
  },
  {
    ...{ of, file: `${src}/erasing.ts` },
    what: 'a segment is written anew from what is in the store',
    from: 'if (known.some((one) => one.sha256 === sha256)) return found;',
    to: 'if (known.length > 0) return found;',
  },
  {
    ...{ of, file: `${src}/erasing.ts` },
    what: 'what a hold keeps is erased',
    from: 'refuseHeld(log.heads.holds, span);',
    to: '',
  },
  {
    ...{ of, file: `${src}/lake-copies.ts` },
    what: 'an object of the lake is believed',
    from: 'if (now === sha256 || erasedRows(entry, now, erasures) !== null)',
    to: 'if (now.length === sha256.length)',
  },
  {
    ...{ of, file: `${src}/lake-erasing.ts` },
    what: 'rows that a hold keeps are erased',
    from: 'refuseHeld(log.heads.holds, read);',
    to: '',
  },
  {
    ...{ of, file: `${src}/retention.ts` },
    what: 'what a hold keeps is pruned',
    from: '.some((hold) => isHeld(hold, old));',
    to: '.some((hold) => isHeld(hold, { first: 0, last: 0 }));',
  },
];
