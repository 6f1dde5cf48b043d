// The flaws that the simulation must find: for each engine, likely mistakes of its authors. A text that is no more in
// the code is an error (mutations.test.ts), so that they move with it.

import { ofArchive } from './archive/mutations.ts';
import { ofCluster } from './cluster/mutations.ts';
import { ofPairs } from './pairs/mutations.ts';
import type { Kind } from './worlds.ts';

/** One flaw. */
export interface Mutation {
  /** What is wrong then. */
  readonly what: string;
  readonly of: Kind;
  readonly file: string;
  /** Stands once in the file. */
  readonly from: string;
  readonly to: string;
  /** Few worlds show it: the first seed to try. Undefined: the first of all. */
  readonly firstSeed?: number;
  /** One world in thousands shows it: too many for a run of the tests. */
  readonly isRare?: boolean;
}

const collection = 'src/collection';
const list = 'src/list';
const parents = 'src/parents';

/** All of them. */
export const mutations: readonly Mutation[] = [
  {
    ...{ of: 'list', file: `${list}/page-pager.ts` },
    what: 'the page before is not asked for again',
    from: "if (asked.outcome !== 'ok' || isFirst(position) || this.#tail.length === 0) return asked;",
    to: 'if (Number.isFinite(tries)) return asked;',
  },
  {
    ...{ of: 'list', file: `${list}/page-pager.ts` },
    what: 'rows that have come in behind a page are passed over',
    from: 'this.#isBefore = end < again.page.records.length;',
    to: 'this.#isBefore = false;',
  },
  {
    ...{ of: 'list', file: `${list}/window-pager.ts` },
    what: 'a second lies between two windows',
    from: 'const first = this.#startOf({ from: window.to, to: null });',
    to: 'const first = this.#startOf({ from: window.to + 1_000, to: null });',
  },
  {
    ...{ of: 'list', file: `${list}/window-pager.ts` },
    what: 'a window is asked for that is not over',
    from: 'wholeSecond(windows.now - windows.lagMs)',
    to: 'wholeSecond(windows.now + 60_000)',
  },
  {
    ...{ of: 'list', file: `${list}/window-pager.ts` },
    what: 'a window is left at its first page',
    from: 'return next === null ? this.leave(position) : { ...next, window };',
    to: 'return this.leave(position);',
  },
  {
    ...{ of: 'list', file: `${list}/read-back.ts` },
    what: 'windows are not looked through again',
    from: 'const from = Math.max(window.from, wholeSecond(horizon));',
    to: 'const from = Math.max(window.from, wholeSecond(poll.now));',
  },
  {
    ...{ of: 'list', file: `${list}/next-address.ts` },
    what: 'of an address the query is left out',
    from: `sluice must not send.
  if (next.username !== '' || next.password !== '') return null;
  return \`\${next.pathname}\${next.search}\`;`,
    to: `sluice must not send.
  return next.pathname;`,
  },
  {
    ...{ of: 'list', file: `${list}/read-end.ts` },
    what: 'a suspicion skips records or halts, as a rejection does',
    from: "const reaction = isSuspicion ? 'rewalk' : settings.onCursorInvalid;",
    to: 'const reaction = settings.onCursorInvalid;',
  },
  {
    ...{ of: 'list', file: `${list}/fetch-page.ts` },
    what: 'parameters do not reach the body of a POST',
    from: '{ ...request, body: { ...request.body, ...Object.fromEntries(parameters) } }',
    to: '{ ...request, body: { ...request.body } }',
  },
  {
    ...{ of: 'list', file: 'src/tools/record-list.ts' },
    what: 'of lines the last one is left out',
    from: '= arrayOfLines(lines);',
    to: '= arrayOfLines(lines.subarray(0, Math.max(0, lines.lastIndexOf(0x0a, -2))));',
  },
  {
    ...{ of: 'collection', file: `${collection}/judge.ts` },
    what: 'a change counts as confirmed by whatever reading is next',
    from: 'const isOver = now - at >= rules.confirmAfterMs && (!isMoved || rules.confirmAfterMs === 0);',
    to: 'const isOver = now >= at;',
  },
  {
    ...{ of: 'collection', file: `${collection}/judge.ts` },
    what: 'a removal is reported a reading too early',
    from: 'absent.count >= readings &&',
    to: 'absent.count >= readings - 1 &&',
  },
  {
    ...{ of: 'collection', file: `${collection}/judge.ts` },
    what: 'an absence need not last',
    from: '&& now - absent.since >= settleMs',
    to: '',
  },
  {
    ...{ of: 'collection', file: `${collection}/judge.ts` },
    what: 'no absence is too large to be believed',
    from: 'missing > 0 && (many || missing === known)',
    to: 'many && missing > known',
  },
  {
    ...{ of: 'collection', file: `${collection}/judge.ts` },
    what: 'going back to what was before is reported at once',
    from: 'now >= at && now - at < rules.settleMs;',
    to: 'now < at;',
  },
  {
    ...{ of: 'collection', file: `${collection}/judge.ts` },
    what: 'a field that is new everywhere is a change of each entity',
    from: '(times >= least ? [field] : [])',
    to: '(times > least * 1_000 ? [field] : [])',
  },
  {
    ...{ of: 'collection', file: `${collection}/generation.ts` },
    what: 'absences count in an incomplete reading',
    from: 'if (reading.flaw === null && !isSecondLook) {',
    to: 'if (!isSecondLook) {',
  },
  {
    ...{ of: 'collection', file: `${collection}/generation.ts` },
    what: 'absences count in the look that is to confirm a change',
    from: 'if (reading.flaw === null && !isSecondLook) {',
    to: 'if (reading.flaw === null) {',
  },
  {
    ...{ of: 'collection', file: `${collection}/rotation.ts` },
    what: 'what is not listed is not asked for by its id',
    from: "asks > asksMax ? 'unknown' : await stillThere(key);",
    to: "asks > asksMax ? 'unknown' : stillThere === null ? 'there' : 'gone';",
  },
  {
    ...{ of: 'collection', file: `${collection}/generation.ts` },
    what: 'versions are not counted on',
    from: 'version: onlyDrift ? before.version : before.version + 1,',
    to: 'version: before.version,',
  },
  {
    ...{ of: 'collection', file: `${collection}/whole-list.ts` },
    what: 'the second page of a list is dropped',
    from: 'if (taken !== null) await',
    to: 'if (taken !== null && this.#pages !== 2) await',
  },
  {
    ...{ of: 'collection', file: `${collection}/poller.ts` },
    what: 'changes are held without the entities as reported',
    from: 'entities: made.known.change,',
    to: 'entities: { put: [], drop: [] },',
  },
  {
    ...{ of: 'collection', file: `${collection}/poller.ts` },
    what: 'what could not be held counts as reported',
    from: `      this.#known = null;
      this.#volatile = null;
      if (signal.aborted`,
    to: '      if (signal.aborted',
  },
  {
    ...{ of: 'collection', file: `${collection}/poller.ts` },
    what: 'the baseline is never closed',
    from: "baseline: isFirst && !closes ? 'open' : 'told',",
    to: "baseline: isFirst || !closes ? 'open' : 'told',",
  },
  {
    ...{ of: 'collection', file: `${collection}/known.ts` },
    what: 'what waits to be confirmed, or was missing, is not looked at again',
    from: `(isWaiting ? waits : 0) |
      (isDenied ? denied : 0) |
      (missed === null ? 0 : absent) |`,
    to: '(isDenied ? denied : 0) |',
  },
  {
    ...{ of: 'collection', file: `${collection}/entities.ts` },
    what: 'parts are known by their ids alone, whatever they are parts of',
    from: 'entityOf([kind, parentId, list, id]',
    to: "entityOf([kind, '', list, id]",
  },
  {
    ...{ of: 'collection', file: 'src/poll/canonical.ts' },
    what: 'the order of what has none is compared',
    from: 'elements.sort();',
    to: 'elements.slice();',
  },
  {
    ...{ of: 'collection', file: `${collection}/whole-list.ts` },
    what: 'rows that are counted are taken for rows that were shown',
    from: 'doubt === null && this.#rows < this.#least',
    to: 'doubt === null && this.#rows < 0',
  },
  {
    ...{ of: 'parents', file: `${parents}/settle.ts` },
    what: 'of objects answered together one is reported',
    from: 'if (one.page) pages.push(one.page);',
    to: 'if (one.page && pages.length === 0) pages.push(one.page);',
  },
  {
    ...{ of: 'parents', file: `${parents}/ask-object.ts` },
    what: 'an object is reported at each asking',
    from: 'digest === known.digest ||',
    to: "digest === '' ||",
  },
  {
    ...{ of: 'parents', file: `${parents}/ask-object.ts` },
    what: 'every object counts as one that changes no more',
    from: 'isFinal(isWrapped ? data : value) ?? false',
    to: 'isFinal(isWrapped ? data : value) !== null',
  },
  {
    ...{ of: 'parents', file: `${parents}/next-turn.ts` },
    what: 'an object that changes no more is asked for on and on',
    from: 'rank: 2, due: neverDue };',
    to: 'rank: 1, due: until + 1 };',
  },
  {
    ...{ of: 'parents', file: `${parents}/next-turn.ts` },
    what: 'what upstream refuses as a whole is reported of each parent',
    from: 'if (isOwn && now',
    to: 'if (now',
  },
  {
    ...{ of: 'parents', file: `${parents}/next-turn.ts` },
    what: 'a parent is reported as lost each time that it is refused',
    from: 'if (reported) {',
    to: 'if (reported && times < 0) {',
  },
  {
    ...{ of: 'parents', file: `${parents}/next-turn.ts` },
    what: 'nobody is reported of a parent that is refused',
    from: 'if (isOwn && now',
    to: 'if (isOwn && times > 1_000 && now',
  },
  {
    ...{ of: 'parents', file: `${parents}/poller.ts` },
    what: 'upstream is blamed for one that is refused where no other is due',
    from: 'settled.failure && (await',
    to: 'settled.failure && null && (await',
    firstSeed: 800,
  },
  {
    ...{ of: 'parents', file: `${parents}/next-turn.ts` },
    what: 'a timeline that is as long as it was counts as shorter',
    from: 'if (missing <= 0) return null;',
    to: 'if (missing < 0) return null;',
  },
  {
    ...{ of: 'parents', file: `${parents}/ask-list.ts` },
    what: 'all lists have their place in one row',
    from: 'parent: { stream: name, id } });',
    to: "parent: { stream: name, id: 'p0' } });",
  },
  {
    ...{ of: 'parents', file: `${parents}/ask-list.ts` },
    what: 'records do not say whose they are',
    from: 'stream: name, parent: id, ...(company',
    to: 'stream: name, parent: name, ...(company',
  },
  {
    ...{ of: 'parents', file: `${parents}/ask-list.ts` },
    what: 'a page of three records is dropped',
    from: 'this.#newsOf(whole, reported) : [whole];',
    to: 'this.#newsOf(whole, reported) : whole.uids.length === 96 ? [] : [whole];',
  },
  {
    ...{ of: 'parents', file: `${parents}/poller.ts` },
    what: 'that a parent was asked is not held',
    from: 'pages: [...pages, ...own], checkpoint, parents });',
    to: 'pages: [...pages, ...own], checkpoint, parents: parents.slice(1) });',
  },
  {
    ...{ of: 'parents', file: `${parents}/poller.ts` },
    what: 'after a clock was set back parents rest until it has caught up',
    from: 'this.#until + restMs',
    to: '2 ** 52',
  },
  {
    ...{ of: 'parents', file: 'src/hold/parents.ts' },
    what: 'parents that rest are not asked',
    from: 'const rows = [0, 1].flatMap(',
    to: 'const rows = [0].flatMap(',
  },
  ...ofCluster,
  ...ofArchive,
  ...ofPairs,
];
