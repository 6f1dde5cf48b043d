// The reports to the sinks about one collection, change after change, and whether each of them is true. The rule:
//
//   created, updated, deleted follow each other in a possible order, each relative to the last report, with
//   its version increased by one;
//   reported content was true when the reading saw it; of an update each new value also was
//   `confirm_after` before, unless it changed in each of three readings: values are
//   confirmed one by one (cases.md, R3);
//   an entity reported as deleted was away in as many readings, as long and as often as the rules require;
//   one baseline for each time that nothing was known.
//
// A baseline that is only summed up leaves the state of each entity open: any content that was true during the reading
// may be the start of the next change.

import { type Content, contentOf, keyOf, type ModelCollection, rowIdOf } from './model.ts';
import type { Troubles } from './server.ts';
import type { Traits } from './traits.ts';

/** One poll that has ended. */
export interface Poll {
  readonly begunAt: number;
  readonly endedAt: number;
  readonly troubles: Troubles;
  /** The log says that the collection could not be read whole. */
  readonly isPart: boolean;
  readonly isDone: boolean;
  /** It was there to confirm the one before, and says nothing of what is missing. */
  readonly isSecondLook: boolean;
}

/** The last report about one key; null: that it does not exist. More than one if that is open. */
interface LastReported {
  readonly options: readonly (Content | null)[];
  readonly version: number | null;
  /** The report before it, and when it was replaced. */
  readonly left?: { readonly content: Content | null; readonly at: number };
}

/** A change as reported. */
interface ToldChange {
  readonly change: 'created' | 'updated' | 'deleted' | 'baseline' | 'state';
  readonly entity_kind: string;
  readonly entity_id: string;
  readonly parent_id?: string;
  readonly entity_version: number;
  readonly epoch: string;
  readonly generation: number;
  readonly changed?: readonly string[];
  readonly before?: Members;
  readonly after?: Members;
  readonly count?: number;
}

type Members = Readonly<Record<string, unknown>>;

/** So long may a poll take from what it reads to its end. */
const pollMs = 10_000;
/** The content of an entity without that of its own answer. */
const nothing = contentOf({});
/** A value that differs in three readings in a row, and so changes twice between them, is reported unconfirmed. */
const unconfirmedMoves = 2;
/** An absence of many needs so many readings. */
const suspectReadings = 3;

/** Follows the reports. */
export class ToldCollection {
  readonly findings: string[] = [];
  /** Updates that say nothing but that a field is new. */
  hollow = 0;
  readonly #traits: Traits;
  readonly #collection: ModelCollection;
  readonly #deniedUntil: ReadonlyMap<string, number>;
  #reported = new Map<string, LastReported>();
  #isBegun = false;
  /** Polls of before the baseline. */
  #reading: Poll[] = [];
  /** Polls that looked for what is missing, since the state was lost. */
  #polls: Poll[] = [];

  constructor(
    traits: Traits,
    collection: ModelCollection,
    deniedUntil: ReadonlyMap<string, number>,
  ) {
    this.#traits = traits;
    this.#collection = collection;
    this.#deniedUntil = deniedUntil;
  }

  /** The state is gone: all is reported again. */
  loseState(): void {
    this.#isBegun = false;
    this.#reported = new Map();
    this.#reading = [];
    this.#polls = [];
  }

  /** Adds the reports of one poll. */
  take(texts: readonly string[], poll: Poll): void {
    this.#polls.push(poll);
    this.#reading.push(poll);
    const changes = texts.map((text) => JSON.parse(text) as ToldChange);
    this.#lookAtRemovals(changes, poll);
    for (const change of changes) {
      const isFirst = change.change === 'baseline' || change.change === 'state';
      if (isFirst && this.#isBegun) this.#find('a baseline though the state was there', change);
      if (change.change === 'baseline') this.#takeBaseline(change);
      else this.#takeChange(change, poll);
    }
    if (this.#traits.rules.baseline === 'summary' || this.#isBegun) return;
    // States are reported as they are read, until a reading is complete.
    const { isDone } = poll;
    this.#isBegun = isDone || changes.some(({ change }) => change !== 'state');
    if (!isDone || poll.isPart || poll.troubles.any) return;
    for (const key of this.#collection.spans.keys()) {
      const isAway = this.#collection.wasAway(key, poll.begunAt - this.#traits.lagMs, poll.endedAt);
      // One that is denied by its id is reported as it is listed, without its parts.
      const isDenied = (this.#deniedUntil.get(rowIdOf(key)) ?? 0) > poll.begunAt;
      if (!isAway && !isDenied && this.isAbsent(key)) this.#find(`not in the baseline: ${key}`);
    }
  }

  /** The reports about each key, including possible ones. */
  isReported(key: string, content: Content | null): boolean {
    const { options } = this.#reported.get(key) ?? { options: [null] };
    return options.some((option) => isSame(option, content));
  }

  /** It was reported as deleted, or never reported. */
  isAbsent(key: string): boolean {
    return this.#reported.get(key)?.options.every((option) => option === null) ?? true;
  }

  /** Whether there was a baseline for the state as it is. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** It is only summed up: all that stood while it was read may be in it. */
  #takeBaseline(change: ToldChange): void {
    this.#isBegun = true;
    const from = (this.#reading[0]?.begunAt ?? 0) - this.#traits.lagMs;
    const to = this.#reading.at(-1)?.endedAt ?? 0;
    const isClean = this.#reading.every(({ troubles, isPart }) => !troubles.any && !isPart);
    let [least, most] = [0, 0];
    for (const key of this.#collection.spans.keys()) {
      const contents = this.#collection.contents(key, from, to);
      const isThroughout = isClean && !this.#collection.wasAway(key, from, to);
      if (contents.length > 0) most += 1;
      if (isThroughout) least += 1;
      const denied = isClean ? [] : contents.map(({ listed }) => ({ listed, detailed: nothing }));
      const options = [...contents, ...denied, ...(isThroughout ? [] : [null])];
      this.#reported.set(key, { options, version: null });
    }
    const { count = -1 } = change;
    if (count < least || count > most) this.#find(`a baseline of ${least} to ${most}`, change);
  }

  #takeChange(change: ToldChange, { begunAt, endedAt, troubles }: Poll): void {
    const { lagMs, rules, jumps, schema } = this.#traits;
    const key = keyFor(change, this.#traits);
    const reported = this.#reported.get(key) ?? { options: [null], version: null };
    const before = change.before === undefined ? null : this.#contentOf(change, change.before);
    const after = change.after === undefined ? null : this.#contentOf(change, change.after);
    const { version } = reported;
    const isNew = reported.options.every((option) => option === null);
    const isState = change.change === 'state';
    const expected = isNew || change.change === 'created' ? 1 : version && version + 1;
    if (expected !== null && change.entity_version !== expected) {
      this.#find(`version ${expected} is due`, change);
    }
    if (!isState && !reported.options.some((option) => isSame(option, before))) {
      this.#find(`not what was told before: ${JSON.stringify(reported.options)}`, change);
    }
    const is = before === null ? 'created' : after === null ? 'deleted' : 'updated';
    if (change.change !== is && !isState) this.#find(`it is ${is}`, change);
    const left = { content: before, at: endedAt };
    this.#reported.set(key, { options: [after], version: change.entity_version, left });
    const { content = null, at = 0 } = reported.left ?? {};
    const isBack = is === 'updated' && content !== null && isSame(content, after);
    if (isBack && !jumps && !schema && endedAt - at < rules.settleMs - pollMs) {
      this.#find('told though it goes back at once', change);
    }
    const window = { from: begunAt - lagMs, to: endedAt };
    // An entity that cannot be read by its id is reported as it is listed.
    const mayBePart = after?.detailed === nothing && troubles.any;
    const current = mayBePart ? { listed: after.listed } : after;
    const isUpdate = is === 'updated' && before !== null && after !== null && !mayBePart;
    const stood = isUpdate
      ? this.#valuesStood(key, [before, after], window)
      : current === null || this.#collection.stood(key, current, window);
    if (!stood) {
      this.#find('it did not stand', change);
    }
    if (is !== 'updated') return;
    if (isSame(before, after)) this.hollow += 1;
    else this.#lookAtPaths(change);
    // Taken back and changed again it is the same content, unless another was surely seen between.
    const other = this.#polls.findLast(
      (poll) => isSure(poll) && this.#showed(key, poll, [before, after]),
    );
    const from = other === undefined ? 0 : other.begunAt - lagMs;
    const seenBefore = { from, to: endedAt - rules.confirmAfterMs };
    const isConfirmed = isUpdate
      ? this.#valuesStood(key, [before, after], seenBefore, endedAt)
      : this.#collection.stood(key, after, seenBefore);
    if (!jumps && !isSame(before, after) && !isConfirmed) {
      this.#find('told before it was confirmed', change);
    }
  }

  /** Each value that an update reports as new stood then. */
  #valuesStood(
    key: string,
    [before, after]: readonly [Content, Content],
    { from, to }: { readonly from: number; readonly to: number },
    movedUntil = 0,
  ): boolean {
    const shown = this.#collection.contents(key, from, to);
    return (['listed', 'detailed'] as const).every((half) => {
      const [old, now] = [valuesOf(before[half]), valuesOf(after[half])];
      return [...now].every(
        ([name, value]) =>
          old.get(name) === value ||
          shown.some((content) => valuesOf(content[half]).get(name) === value) ||
          this.#movesOf(key, half, name, movedUntil) >= unconfirmedMoves,
      );
    });
  }

  /** How often a value has changed until then. */
  #movesOf(key: string, half: keyof Content, name: string, until: number): number {
    const spans = (this.#collection.spans.get(key) ?? []).filter(({ from }) => from <= until);
    const values = spans.map((span) => valuesOf(span[half]).get(name));
    return values.filter((value, i) => i > 0 && value !== values[i - 1]).length;
  }

  /** A poll has surely read it, and not with what an update reports as new. */
  #showed(
    key: string,
    { begunAt, endedAt }: Poll,
    [before, after]: readonly [Content | null, Content | null],
  ): boolean {
    const from = begunAt - this.#traits.lagMs;
    const isDenied = (this.#deniedUntil.get(rowIdOf(key)) ?? 0) > begunAt;
    if (isDenied || this.#collection.wasAway(key, from, endedAt)) return false;
    const window = { from, to: endedAt };
    return before === null || after === null
      ? !this.#collection.stood(key, after, window)
      : !this.#valuesStood(key, [before, after], window);
  }

  #lookAtPaths(change: ToldChange): void {
    const [before, after] = [membersOf(change.before), membersOf(change.after)];
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    const differing = names.filter(
      (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
    );
    const paths = (change.changed ?? []).filter((path) => path !== 'extra');
    if (paths.toSorted().join() !== differing.toSorted().join()) {
      this.#find(`${differing.join()} differ`, change);
    }
  }

  /** So many at once, and each away long enough. */
  #lookAtRemovals(changes: readonly ToldChange[], poll: Poll): void {
    const { rules, lagMs, jumps, detail } = this.#traits;
    const removed = changes.filter(({ change }) => change === 'deleted');
    const known = [...this.#reported.values()].filter(({ options }) =>
      options.some(Boolean),
    ).length;
    const many = Math.max(rules.brake.count, rules.brake.share * known);
    const readings = removed.length > many ? suspectReadings : rules.removalsAfter;
    for (const change of removed) {
      const key = keyFor(change, this.#traits);
      const isAway = ({ begunAt, endedAt }: Poll) =>
        this.#collection.wasAway(key, begunAt - lagMs, endedAt);
      const isUnlisted = ({ troubles }: Poll) => troubles.unlisted.has(rowIdOf(key));
      // After it was surely seen, its absence starts again.
      const seen = this.#polls.findLastIndex((other) => isSure(other) && !isAway(other));
      const away = this.#polls
        .slice(seen + 1)
        .filter((other) => !other.isSecondLook && (isUnlisted(other) || isAway(other)));
      // If nothing is requested by its id, one that came back and is left out is away to any reader.
      const isUnseen = isAway(poll) || (isUnlisted(poll) && !detail);
      if (!isUnseen) this.#find('it stands', change);
      else if (away.length < Math.max(readings, rules.removalsAfter)) {
        this.#find(`away in no more than ${away.length} readings`, change);
      }
      const first = away[0] ?? poll;
      if (!jumps && poll.endedAt - first.begunAt < rules.settleMs) {
        this.#find('away for a short time', change);
      }
    }
  }

  #contentOf({ entity_kind }: ToldChange, members: Members | undefined): Content {
    const { name, id, ...own } = membersOf(members);
    const { detail, named } = this.#traits;
    if (entity_kind === 'rule') return { listed: '', detailed: contentOf({ ...own, id }) };
    const listed = { ...(named ? { id } : {}), name };
    if (!detail) return { listed: contentOf({ ...listed, ...own }), detailed: '' };
    return { listed: contentOf(listed), detailed: contentOf(own) };
  }

  #find(what: string, change?: ToldChange): void {
    this.findings.push(`${what}${change === undefined ? '' : `: ${JSON.stringify(change)}`}`);
  }
}

/** Without what is not compared, or is new over night. */
function membersOf(members: Members | undefined): Members {
  const { updated_at: _, extra: __, tags, ...own } = members ?? {};
  return Array.isArray(tags) ? { ...own, tags: tags.toSorted() } : own;
}

function keyFor(
  { entity_kind, entity_id, parent_id, before, after }: ToldChange,
  { named }: Traits,
) {
  if (!named) return keyOf(entity_kind, String((after ?? before)?.n));
  return keyOf(entity_kind, entity_id, parent_id);
}

/** It has read all of the collection. */
function isSure({ isDone, isPart, troubles }: Poll): boolean {
  return isDone && !isPart && !troubles.any;
}

/** The members of a content, each as text. */
function valuesOf(content: string): ReadonlyMap<string, string> {
  const members = content === '' ? {} : (JSON.parse(content) as Members);
  return new Map(Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)]));
}

function isSame(a: Content | null, b: Content | null): boolean {
  if (a === null || b === null) return a === b;
  return a.listed === b.listed && a.detailed === b.detailed;
}
