// The attacker: full write access to the store, and no key. He acts between steps and before any call of the process,
// more often than not on the object of the call; he may restore his changes at once, later or at the end. What must
// stay true: he learns all that the store shows, and forges all that needs no key.

import type { Random } from '../../../src/sandbox/random.ts';
import { timeText } from '../../../src/tools/time-text.ts';
import type { Tell } from '../verdict.ts';
import {
  type Forged,
  forgedBody,
  forgedEntry,
  forgedUids,
  sizeIn,
  swappedBody,
} from './forgery.ts';
import type { HostileStore, StoreCall } from './hostile-store.ts';
import type { Process } from './process.ts';

const day = 86_400_000;

/** What he is after most. */
export type Focus = 'any' | 'opening' | 'holds' | 'erasures' | 'lake';
/** All of them. */
export const focuses: readonly Focus[] = ['any', 'opening', 'holds', 'erasures', 'lake'];

/** Calls that he waits for. */
const patterns: Readonly<Record<Focus, RegExp>> = {
  any: /^/,
  opening: /^(archive\.json|checkpoint|tile|writer)/,
  holds: /^(holds|prune|tile)/,
  erasures: /^(segments|erase|holds)/,
  lake: /^(lake|erase|prune)/,
};

const openingPatterns = [/^tile\/\d/, /^tile\/entries/, /^tile/, /^(archive\.json|checkpoint)/];

/** An archive that is attacked. */
interface Target {
  readonly store: HostileStore;
  readonly process: Process;
}

interface Undo {
  readonly store: HostileStore;
  readonly name: string;
  readonly body: Buffer | null;
  /** In place, with its times set back, it looks as it did. */
  readonly tag: string | undefined;
  /** Calls until then; 0: with the end of the present one. */
  left: number;
}

/** The attacker of one world. */
export class Attacker {
  calls = 0;
  hasActed = false;
  readonly #random: Random;
  readonly #tell: Tell;
  readonly #now: () => number;
  readonly #focus: Focus;
  /** Calls that he waits for, and how often he acts then. */
  readonly #pattern: RegExp;
  readonly #eagerness: number;
  #budget: number;
  /** He waits for requests, and does nothing but make them once more. */
  readonly #isPatient: boolean;
  /** He exchanges bodies, or lake objects, for the one call that reads them, so that an erasure finds another record, or none. */
  readonly #isExchanging: boolean;
  #targets: readonly Target[] = [];
  #undo: Undo[] = [];
  /** Names that he has changed. */
  readonly #touched = new Map<HostileStore, Set<string>>();
  /** Whole stores as he has copied them. */
  readonly #copies: { store: HostileStore; files: ReadonlyMap<string, Buffer> }[] = [];

  constructor(
    random: Random,
    about: { budget: number; focus: Focus; now: () => number; tell: Tell },
  ) {
    this.#random = random;
    this.#budget = about.budget;
    this.#focus = about.focus;
    // Of the calls of an opening one kind is enough: the first that is refused ends it.
    const isOne = about.focus === 'opening' && random.chance(0.75);
    this.#pattern = isOne ? random.pick(openingPatterns) : patterns[about.focus];
    this.#eagerness = isOne ? 0.3 : 0.12;
    this.#isPatient = about.focus === 'holds' && random.chance(0.4);
    this.#isExchanging = ['erasures', 'lake'].includes(about.focus) && random.chance(0.3);
    this.#now = about.now;
    this.#tell = about.tell;
  }

  meet(targets: readonly Target[]): void {
    this.#targets = targets;
  }

  /** Before a call of the process. */
  before(store: HostileStore, call: StoreCall): void {
    this.calls += 1;
    if (this.#budget <= 0 || this.#isPatient) return;
    if (this.#isExchanging) {
      this.#exchange(store, call);
      return;
    }
    const isMeant = this.#focus !== 'any' && this.#pattern.test(call.name);
    if (!this.#random.chance(isMeant ? this.#eagerness : 0.02)) return;
    const isTile = call.name.startsWith('tile/') && call.kind === 'read';
    if (isTile && this.#random.chance(0.6)) {
      const forged = forgedEntry(store, this.#random, this.#now());
      // Who opens the log reads tile and bundle at its edge, and then both once more.
      const isOpening = this.#focus === 'opening' && this.#random.chance(0.5);
      this.#apply(store, 'an entry', forged, true, isOpening ? 1 : undefined);
      return;
    }
    const isSegment = call.name.startsWith('segments/') && call.kind === 'read';
    if (isSegment && this.#random.chance(0.5)) {
      this.#apply(store, 'a body', swappedBody(store, call.name, this.#random), true, 0);
      return;
    }
    const name = call.kind === 'list' ? this.#listed(store, call.name) : call.name;
    if (name !== null && this.#random.chance(0.8)) this.#attack(store, name, true);
    else this.#attackAnything(store, true);
  }

  #exchange(store: HostileStore, { kind, name }: StoreCall): void {
    const isMeant = this.#focus === 'lake' ? name.endsWith('.parquet') : /^seg|quet$/.test(name);
    if (kind !== 'read' || !isMeant || !this.#random.chance(0.5)) return;
    if (name.startsWith('segments/')) {
      this.#apply(store, 'a body', swappedBody(store, name, this.#random), true, 0);
    } else if (name.endsWith('.parquet')) {
      const none =
        store
          .body(name)
          ?.toString()
          .replace(/"uids":\[.*?\]/, '"uids":[]') ?? '{}';
      const table = this.#random.chance(0.2) ? null : Buffer.from(none);
      this.#apply(store, name, new Map([[name, table]]), true, 0);
    }
  }

  /** After it. */
  after(store: HostileStore, _: StoreCall): void {
    for (const one of this.#undo) {
      if (one.store === store) one.left -= 1;
    }
    const due = this.#undo.filter(({ left }) => left < 0);
    if (due.length === 0) return;
    this.#undo = this.#undo.filter(({ left }) => left >= 0);
    for (const one of due) this.#putBack(one);
  }

  /** Between two steps. */
  act(): void {
    for (const { store } of this.#targets) {
      if (this.#random.chance(this.#focus === 'opening' ? 0.3 : 0.1))
        this.#copies.push({ store, files: store.snapshot() });
    }
    if (this.#budget <= 0 || this.#isExchanging) return;
    if (!this.#random.chance(this.#isPatient ? 0.7 : 0.3)) return;
    const { store } = this.#random.pick(this.#targets);
    // A log that continued from an older store is not the one that an older state knows.
    if (this.#focus === 'opening' && this.#random.chance(0.3)) {
      this.#rollBack(store);
      return;
    }
    if (this.#isPatient) {
      this.#replay(store);
      return;
    }
    // A cut is changed most easily before it is entered.
    const ending = this.#random.pick(['.cut', '.cut', '.parquet']);
    const cut =
      this.#focus === 'lake' ? store.names.findLast((name) => name.endsWith(ending)) : null;
    if (cut != null && this.#random.chance(0.5)) this.#attack(store, cut, false);
    else this.#attackAnything(store, false);
  }

  /** The last turn: the attacker hides the changes, or some of them. */
  leave(): void {
    const hides = this.#random.pick([0, 0.7, 1]);
    for (const [store, names] of this.#touched) {
      for (const name of names) {
        if (!this.#random.chance(hides)) continue;
        store.forge(name, store.honest.get(name)?.at(-1) ?? null);
      }
    }
    if (this.#budget > 0 && this.#random.chance(0.2)) {
      this.#attackAnything(this.#random.pick(this.#targets).store, false);
    }
  }

  #listed(store: HostileStore, prefix: string): string | null {
    const names = store.names.filter((name) => name.startsWith(prefix));
    return names.length === 0 ? null : this.#random.pick(names);
  }

  #attackAnything(store: HostileStore, isWithin: boolean): void {
    const random = this.#random;
    const some = random.next();
    if (some < 0.25) {
      this.#apply(store, 'an entry', forgedEntry(store, random, this.#now()), isWithin);
    } else if (some < 0.35) this.#apply(store, 'a body', forgedBody(store, random), isWithin);
    else if (some < 0.4) this.#apply(store, 'uids', forgedUids(store, random), isWithin);
    else if (some < 0.45) this.#rollBack(store);
    else if (some < 0.5) this.#cut(store, isWithin);
    else {
      const names = [...new Set([...store.names, ...store.honest.keys()])];
      if (names.length === 0) return;
      // Of each kind of object as often, however many of them there are.
      const kinds = [...Map.groupBy(names, (name) => name.replace(/[/.].*/, '')).values()];
      this.#attack(store, random.pick(random.pick(kinds)), isWithin);
    }
  }

  #attack(store: HostileStore, name: string, isWithin: boolean): void {
    const body = this.#changed(store, name);
    if (body === undefined) return;
    this.#apply(store, name, new Map([[name, body]]), isWithin);
  }

  /** What he makes of an object; undefined: nothing. */
  #changed(store: HostileStore, name: string): Buffer | null | undefined {
    const random = this.#random;
    const now = store.body(name);
    const versions = store.honest.get(name) ?? [];
    const some = random.next();
    if (some < 0.2) return null;
    if (some < 0.45 && versions.length > 0) return random.pick(versions);
    if (some < 0.52) {
      const like = name.replace(/\/.*/, '/');
      const { store: from } = random.pick(this.#targets);
      const others = from.names.filter((one) => one.startsWith(like));
      return others.length === 0 ? undefined : (from.body(random.pick(others)) ?? undefined);
    }
    const special = this.#specially(name, now ?? versions.findLast((one) => one !== null) ?? null);
    if (special !== undefined && random.chance(0.7)) return special;
    if (now === null || now.length === 0) return Buffer.from('{}');
    const made = Buffer.from(now);
    const at = random.below(made.length);
    if (random.chance(0.5)) made[at] = (made[at] ?? 0) ^ (1 << random.below(8));
    else
      return random.chance(0.5) ? made.subarray(0, at) : Buffer.concat([made, made.subarray(at)]);
    return made;
  }

  /** What he makes of an object whose meaning he knows. */
  #specially(name: string, body: Buffer | null): Buffer | undefined {
    const random = this.#random;
    const now = this.#now();
    // biome-ignore lint/suspicious/noExplicitAny: an attacker writes whatever he likes
    const json = (change: (value: any) => object): Buffer | undefined => {
      try {
        return Buffer.from(
          `${JSON.stringify(change(JSON.parse(body?.toString() ?? '{}')), null, 2)}\n`,
        );
      } catch {
        return undefined;
      }
    };
    const time = () => timeText(now + (random.below(100) - 80) * day);
    if (name.startsWith('holds/')) {
      return json((hold) => ({
        ...hold,
        ...random.pick([
          { from: timeText(0), to: timeText(day) },
          { released_at: time() },
          { released_at: null },
          { id: 'case-1' },
          { from: null, to: null },
        ]),
      }));
    }
    if (name.startsWith('erase/')) {
      return json((request) => ({
        ...request,
        ...random.pick([
          { uid: random.pick(this.#uids()) },
          { from: null, to: null },
          { asked_at: time() },
          { signed: undefined },
          { sha256: 'a'.repeat(64), pages: [], lake: [] },
        ]),
      }));
    }
    if (name === 'prune.json') {
      const wish = { before: timeText(now + day), asked_at: timeText(now) };
      return json((known) => ({ ...known, ...random.pick([wish, { before: wish.before }]) }));
    }
    if (name === 'archive.json') {
      return json(({ requests, ...manifest }) => ({
        ...manifest,
        ...(random.chance(0.3) && { requests, salt: 'ab'.repeat(32) }),
      }));
    }
    if (name === 'writer') {
      return json((claim) => ({ ...claim, renewed_at: random.pick([null, timeText(now)]) }));
    }
    if (name === 'checkpoint' || name.endsWith('.note')) {
      const text = body?.toString() ?? '';
      const size = sizeIn(body) ?? 1;
      return Buffer.from(
        random.pick([
          text.replace(/\n\d+\n/, `\n${Math.max(1, size + random.below(5) - 2)}\n`),
          `${text}— stranger ${Buffer.alloc(68, 1).toString('base64')}\n`,
        ]),
      );
    }
    if (name.endsWith('.cut')) return this.#forgedCut(body);
    if (name.endsWith('.parquet')) {
      return json((table) => ({ ...table, uids: (table.uids as string[]).slice(1) }));
    }
    return undefined;
  }

  #forgedCut(body: Buffer | null): Buffer | undefined {
    const [facts, line] = (body ?? Buffer.alloc(0)).toString().split('\n');
    try {
      const made = JSON.parse(line ?? '');
      const change = this.#random.pick([
        { events: null },
        { read: [0, 1] },
        { objects: [] },
        { events: [0, 1] },
        { objects: [...made.objects, { ...made.objects[0], object: 'archive.json' }] },
      ]);
      return Buffer.from(`${facts}\n${JSON.stringify({ ...made, ...change })}\n`);
    } catch {
      return undefined;
    }
  }

  #uids(): readonly string[] {
    const uids = this.#targets.flatMap(({ process }) => process.upstream.uids);
    return uids.length === 0 ? ['0'.repeat(64)] : uids;
  }

  /** A whole older state is put back. */
  #rollBack(store: HostileStore): void {
    const copies = this.#copies.filter((one) => one.store === store);
    if (copies.length === 0) return;
    const { files } = this.#random.pick(copies);
    const forged = new Map<string, Buffer | null>(store.names.map((name) => [name, null]));
    for (const [name, body] of files) forged.set(name, body);
    this.#apply(store, 'a whole older state', forged, false);
  }

  /** A request that an operator has signed before is there once more. */
  #replay(store: HostileStore): void {
    const signed = [...store.honest].flatMap(([name, versions]) =>
      /^(holds|erase|prune)/.test(name)
        ? versions.flatMap((body) => (body?.includes('"signed"') ? [{ name, body }] : []))
        : [],
    );
    if (signed.length === 0) return;
    const { name, body } = this.#random.pick(signed);
    this.#apply(store, `${name} once more`, new Map([[name, body]]), false, null);
  }

  /** An older checkpoint, and all later objects are gone, or some of them. */
  #cut(store: HostileStore, isWithin: boolean): void {
    const notes = (store.honest.get('checkpoint') ?? []).filter((one) => one !== null);
    if (notes.length === 0) return;
    const note = this.#random.pick(notes);
    const size = sizeIn(note) ?? 0;
    const forged = new Map<string, Buffer | null>([['checkpoint', note]]);
    for (const name of store.names) {
      const [, kept] = /^checkpoints\/.*\/(\d{20})\.note$/.exec(name) ?? [];
      if (kept !== undefined && Number(kept) > size && this.#random.chance(0.9))
        forged.set(name, null);
    }
    this.#apply(store, 'an older checkpoint', forged, isWithin);
  }

  /** `calls`: how many calls see the change, null: all; undefined: any number. */
  #apply(
    store: HostileStore,
    what: string,
    forged: Forged | null,
    isWithin: boolean,
    calls?: number | null,
  ): void {
    if (forged === null) return;
    this.#budget -= 1;
    this.hasActed = true;
    // In half of the cases only this one call sees it.
    const some = isWithin
      ? this.#random.pick([0, 0, 1, 1, 2, 4, 12, null])
      : this.#random.pick([20, null]);
    const left = calls === undefined ? some : calls;
    const keepsTag = this.#random.chance(0.3);
    const touched = this.#touched.get(store) ?? new Set<string>();
    this.#touched.set(store, touched);
    this.#tell(`   attacker: ${what}${left === null ? '' : `, put back after ${left} calls`}`);
    for (const [name, body] of forged) {
      touched.add(name);
      const tag = store.tag(name);
      if (left !== null) this.#undo.push({ store, name, body: store.body(name), tag, left });
      store.forge(name, body, keepsTag ? tag : undefined);
    }
  }

  /** Not over what somebody else has written since. */
  #putBack({ store, name, body, tag }: Undo): void {
    const honest = store.honest.get(name)?.at(-1);
    const isHonest = honest !== undefined && honest !== null && store.body(name)?.equals(honest);
    if (!isHonest) store.forge(name, body, tag);
  }
}
