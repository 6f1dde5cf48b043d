// The true collection: its entities, how they change, and all earlier states, each with its time span. The truth has
// the form in which changes are reported: an entity or a part, its key, and its content without ignored fields.

import type { Random } from '../../../src/sandbox/random.ts';
import type { Traits } from './traits.ts';

/** A part of an entity. */
export interface Rule {
  readonly id: string;
  readonly n: number;
}

/** One entity at a moment. */
export interface Row {
  readonly id: string;
  /** The content that the list shows. */
  readonly name: string;
  /** What only its own answer shows, where there is one. */
  readonly n: number;
  readonly tags: readonly string[];
  readonly rules: readonly Rule[];
  /** Where it stands in the list. */
  readonly place: number;
  readonly updatedAt: number;
}

/** A content in the two parts that it is read in: the list, and the entity's own answer. */
export interface Content {
  readonly listed: string;
  readonly detailed: string;
}

/** A content and the time that it stood for. */
export interface Span extends Content {
  readonly from: number;
  to: number;
}

/** Few enough for many readings in a short time. */
const rowsMax = 30;

/** The entities of one server. */
export class ModelCollection {
  /** By key, in the order of time. */
  readonly spans = new Map<string, Span[]>();
  /** When an entity moved in the list. */
  readonly #moved = new Map<string, number[]>();
  readonly #traits: Traits;
  readonly #random: Random;
  /** The list as it stood from a time on. */
  readonly #past: { readonly at: number; readonly rows: readonly Row[] }[] = [];
  #rows: readonly Row[] = [];
  #count = 0;
  #front = 0;
  readonly #gone: string[] = [];
  /** Changes that will be taken back. */
  #flaps: { readonly at: number; readonly row: Row }[] = [];

  constructor(traits: Traits, random: Random, now: number) {
    this.#traits = traits;
    this.#random = random;
    const rows = Array.from({ length: traits.history }, () => this.#newRow(now));
    this.#set(rows, now);
  }

  /** The list as it stood at a moment. */
  rowsAt(at: number): readonly Row[] {
    const found = this.#past.findLast((past) => past.at <= at);
    return found?.rows ?? this.#past[0]?.rows ?? [];
  }

  /** An entity that moves while the list is read may be missed, and its parts with it. */
  hasMoved(key: string, from: number, to: number): boolean {
    return (this.#moved.get(rowIdOf(key)) ?? []).some((at) => at >= from && at <= to);
  }

  /** It may have been missed by a reading: away at some time, or moving while the list was read. */
  wasAway(key: string, from: number, to: number): boolean {
    return !this.#stoodThroughout(key, from, to) || this.hasMoved(key, from, to);
  }

  #stoodThroughout(key: string, from: number, to: number): boolean {
    let until = from;
    for (const span of this.spans.get(key) ?? []) {
      if (span.from <= until && span.to > until) until = span.to;
    }
    return until > to;
  }

  /** What stood at some time; its parts apart, since they are read one after the other. */
  contents(key: string, from: number, to: number): readonly Content[] {
    const spans = this.spans.get(key) ?? [];
    const within = spans.filter((span) => span.from <= to && span.to >= from);
    return within.flatMap(({ listed }) => within.map(({ detailed }) => ({ listed, detailed })));
  }

  /** In both of its parts, or in the one that was seen. */
  stood(
    key: string,
    content: Partial<Content> | null,
    { from, to }: { from: number; to: number },
  ): boolean {
    const { listed, detailed } = content ?? {};
    return this.contents(key, from, to).some(
      (other) =>
        (listed ?? other.listed) === other.listed &&
        (detailed ?? other.detailed) === other.detailed,
    );
  }

  /** By which a row stands in keys. */
  idOf({ id, n }: Row): string {
    return this.#traits.named ? id : `${n}`;
  }

  /** Some changes, and those that are due to be taken back. */
  change(now: number): readonly string[] {
    const reported: string[] = [];
    for (const { row } of this.#flaps.filter(({ at }) => at <= now)) {
      const known = this.#rows.find(({ id }) => id === row.id);
      if (known === undefined) continue;
      this.#replace({ ...row, place: known.place }, now);
      reported.push(`back ${row.id}`);
    }
    this.#flaps = this.#flaps.filter(({ at }) => at > now);
    for (let n = 1 + this.#random.below(this.#traits.burst); n > 0; n -= 1) {
      reported.push(this.#changeOne(now));
    }
    return reported;
  }

  /** Most of them go at once. */
  removeMany(now: number): void {
    const kept = this.#rows.filter(() => this.#random.chance(0.3));
    this.#gone.push(...this.#rows.filter((row) => !kept.includes(row)).map(({ id }) => id));
    this.#set(kept, now);
  }

  /** No change will be taken back any more. */
  settle(): void {
    this.#flaps = [];
  }

  #changeOne(now: number): string {
    const row = this.#rows[this.#random.below(this.#rows.length)];
    const what = this.#random.next();
    if (row === undefined || (what < 0.3 && this.#rows.length < rowsMax)) {
      const created = this.#newRow(now);
      this.#set([...this.#rows, created], now);
      return `created ${created.id}`;
    }
    if (what < 0.5) {
      this.#gone.push(row.id);
      this.#set(
        this.#rows.filter((other) => other !== row),
        now,
      );
      return `deleted ${row.id}`;
    }
    if (!this.#traits.named) return 'nothing';
    this.#replace(this.#changed(row, now), now);
    if (this.#random.chance(this.#traits.flaps)) {
      this.#flaps.push({ at: now + this.#random.below(120_000), row });
    }
    return `updated ${row.id}`;
  }

  #replace(row: Row, now: number): void {
    const known = this.#rows.find(({ id }) => id === row.id);
    if (known !== undefined && known.place !== row.place) this.#move(row.id, now);
    this.#set(
      this.#rows.map((other) => (other.id === row.id ? row : other)),
      now,
    );
  }

  #move(id: string, now: number): void {
    this.#moved.set(id, [...(this.#moved.get(id) ?? []), now]);
  }

  #changed(row: Row, now: number): Row {
    const random = this.#random;
    const place = this.#traits.moves ? this.#first() : row.place;
    this.#count += 1;
    const count = this.#count;
    const how = random.next();
    const moved = { ...row, place, updatedAt: now };
    if (how < 0.3) return { ...moved, name: `name ${count}` };
    if (how < 0.5) return { ...moved, name: `name ${count}`, n: count };
    if (how < 0.6) return { ...moved, tags: [`t${count}`, ...row.tags.slice(0, 2)] };
    if (!this.#traits.parts || how < 0.7) return { ...moved, n: count };
    const [first, ...rest] = row.rules;
    if (first === undefined || how < 0.8) {
      return { ...moved, rules: [{ id: `u${count}`, n: count }, ...row.rules] };
    }
    if (how < 0.87) return { ...moved, rules: rest };
    if (how < 0.95) return { ...moved, rules: [{ ...first, n: count }, ...rest] };
    return { ...moved, rules: [...rest, first] };
  }

  #newRow(now: number): Row {
    const random = this.#random;
    this.#count += 1;
    const n = this.#count;
    const isAgain = this.#traits.named && this.#gone.length > 0 && random.chance(0.2);
    const again = isAgain ? random.pick(this.#gone) : null;
    const id = again !== null && !this.#rows.some((row) => row.id === again) ? again : `e${n}`;
    // Deleted and created at once, it gets another index.
    if (id === again) this.#move(id, now);
    const rules = this.#traits.parts ? random.below(4) : 0;
    return {
      id,
      name: `name ${n}`,
      n,
      tags: [`t${n}`, 'x', 'y'].slice(random.below(3)),
      rules: Array.from({ length: rules }, (_, index) => ({ id: `u-${index}`, n })),
      place: this.#traits.moves ? this.#first() : random.next(),
      updatedAt: now,
    };
  }

  #first(): number {
    this.#front -= 1;
    return this.#front;
  }

  #set(rows: readonly Row[], now: number): void {
    this.#rows = rows.toSorted((a, b) => a.place - b.place);
    this.#past.push({ at: now, rows: this.#rows });
    const stands = this.#truth();
    for (const [key, spans] of this.spans) {
      const last = spans.at(-1);
      const content = stands.get(key);
      if (last === undefined || last.to <= now) continue;
      const isSame = content?.listed === last.listed && content.detailed === last.detailed;
      if (!isSame) last.to = now;
    }
    for (const [key, content] of stands) {
      const spans = this.spans.get(key) ?? [];
      this.spans.set(key, spans);
      if (spans.at(-1)?.to === Number.POSITIVE_INFINITY) continue;
      spans.push({ ...content, from: now, to: Number.POSITIVE_INFINITY });
    }
  }

  #truth(): ReadonlyMap<string, Content> {
    const truth = new Map<string, Content>();
    for (const row of this.#rows) {
      const { id, name, n, tags, rules } = row;
      const own = { n, tags: tags.toSorted() };
      const key = keyOf('item', this.idOf(row));
      const named = { ...(this.#traits.named ? { id } : {}), name };
      if (!this.#traits.detail) {
        truth.set(key, { listed: contentOf({ ...named, ...own }), detailed: '' });
        continue;
      }
      const parts = this.#traits.parts ? { rules: rules.map((rule) => rule.id) } : {};
      truth.set(key, { listed: contentOf(named), detailed: contentOf({ ...own, ...parts }) });
      for (const rule of this.#traits.parts ? rules : []) {
        truth.set(keyOf('rule', rule.id, id), { listed: '', detailed: contentOf({ ...rule }) });
      }
    }
    return truth;
  }
}

/** What an entity is known by here. */
export function keyOf(kind: string, id: string, parent = ''): string {
  return `${kind} ${id}${parent === '' ? '' : ` of ${parent}`}`;
}

/** The row that a key is of: its own, or that of the entity it is a part of. */
export function rowIdOf(key: string): string {
  return key.split(' ').at(-1) ?? '';
}

/** A content as text, its members sorted. */
export function contentOf(members: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1))),
  );
}
