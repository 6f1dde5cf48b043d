// Compares the first full scan of a successor's collection with the last reported state of its predecessor. Invariants:
// an entity that the predecessor has reported is not created again. A field that only one side has is no change; a
// different value is an update, whose `before` is the new entity with the predecessor's values. A damaged row halts
// only the predecessor: here its entity counts as unknown, so the successor reports it.

import {
  type EntityState,
  type FoundChange,
  type Inherited,
  parseCollectionCheckpoint,
  readEntityState,
} from '../collection/index.ts';

import type {
  CollectionStream,
  Json,
  Log,
  PairAlone,
  PairScan,
  Spool,
  Stream,
} from '../contracts/index.ts';
import { type ExactJson, isExactObject, parseExact } from '../poll/index.ts';
import { foldedName, valueAt } from '../tools/index.ts';
import { companyIn } from './changes.ts';
import { type FoldRules, foldRecord, isIgnoredPath, renamedPath } from './fold.ts';
import type { SideOfPair } from './pairing.ts';

/** Rows per database query. */
const rowsMax = 200;
/** Number of ids in a report, and their longest length. */
const [examplesMax, idCharsMax] = [3, 64];

/**
 * Null if the stream is no successor's collection, or its predecessor has not finished a first full scan: then there is
 * nothing to compare with.
 */
export async function inheritedFor(
  of: SideOfPair | null,
  stream: Stream,
  { spool, log }: { readonly spool: Pick<Spool, 'recall' | 'entities'>; readonly log: Log },
): Promise<Inherited | null> {
  if (of?.side !== 'new' || stream.kind !== 'collection') return null;
  const known: CollectionStream[] = [];
  for (const old of of.pairing.streams.old) {
    if (old.kind !== 'collection' || isOtherCompany(old.company, stream.company)) continue;
    const { isOfKinds } = of.pairing.sides.new.changes;
    if (isOfKinds && old.entity.kind !== stream.entity.kind) continue;
    const { checkpoint } = await spool.recall(old.name);
    if (parseCollectionCheckpoint(checkpoint)?.baseline !== 'told') return null;
    known.push(old);
  }
  if (known.length === 0) return null;
  const deps: Deps = { known, of, stream, spool, log };
  return {
    async compare(all) {
      const states = await statesOf(all, deps);
      const { pairing } = of;
      const entities: Compared[] = [];
      const changes = all.flatMap((change) => {
        const { after = 'null', key } = change;
        if (change.change !== 'state') return [change];
        const old = states.get(key);
        if (old === undefined) return [{ ...change, change: 'created' as const }];
        const folded = [
          fold(old.text, pairing.sides.old.rules),
          fold(after, pairing.sides.new.rules),
        ] as const;
        const [was, is] = [JSON.stringify(folded[0]), JSON.stringify(folded[1])];
        entities.push({ id: change.state.id.slice(0, idCharsMax), old: was, new: is });
        const before = withOldValues(after, old.text, { folded, sides: pairing.sides });
        return before === null ? [] : [{ ...change, change: 'updated' as const, before }];
      });
      return { changes, scan: { pair: pairing.plan.successor, entities } };
    },
    missing: (has) => missingIn(has, deps),
  };
}

type Compared = PairScan['entities'][number];

interface Deps {
  /** The predecessor's streams. */
  readonly known: readonly CollectionStream[];
  readonly of: SideOfPair;
  readonly stream: CollectionStream;
  readonly spool: Pick<Spool, 'entities'>;
  readonly log: Log;
}

/** The predecessor's entities that the successor's complete scan did not show. */
async function missingIn(
  has: (key: string) => boolean,
  { known, of, stream, spool }: Deps,
): Promise<PairAlone | undefined> {
  // Only the new entity contains the id that both have.
  if (of.pairing.sides.new.changes.entityId !== null) return undefined;
  let count = 0;
  const examples: string[] = [];
  for (const old of known) {
    for (let after = ''; ; ) {
      const rows = await spool.entities(old.name, { after, max: rowsMax });
      for (const [key, body] of rows) {
        after = key;
        const [kind, ...rest] = JSON.parse(key) as readonly string[]; // see entities.ts
        const isEntity = kind === old.entity.kind;
        if (has(JSON.stringify([isEntity ? stream.entity.kind : kind, ...rest]))) continue;
        const state = knownState(body);
        // A damaged row: its entity was reported with the scan.
        if (state === null) continue;
        const whose = old.company ?? companyIn(JSON.parse(state.text) as Json);
        if (isOtherCompany(whose, stream.company)) continue;
        // Another stream of the successor may have it.
        if (whose === null && of.pairing.streams.new.length > 1) return undefined;
        count += 1;
        if (examples.length < examplesMax) examples.push(state.id.slice(0, idCharsMax));
      }
      if (rows.size < rowsMax) break;
    }
  }
  return { count, examples };
}

/** The predecessor's states of these entities, by the new key. */
async function statesOf(
  changes: readonly FoundChange[],
  { known, of, stream, spool, log }: Deps,
): Promise<ReadonlyMap<string, EntityState>> {
  const { changes: rules } = of.pairing.sides.new;
  const states = new Map<string, EntityState>();
  for (const old of known) {
    const keys = new Map(
      changes.map((change) => [oldKey(change, { old, stream, path: rules.entityId }), change.key]),
    );
    const rows = await spool.entities(old.name, [...keys.keys()]);
    for (const [key, body] of rows) {
      const name = keys.get(key);
      const state = knownState(body);
      if (state === null) {
        log.warn(
          'predecessor_entity_damaged',
          'the stored state of an entity cannot be read; the successor reports the entity',
          { stream: old.name, entity: key.slice(0, idCharsMax), successor: stream.name },
        );
        continue;
      }
      const whose = old.company ?? companyIn(JSON.parse(state.text) as Json);
      if (name !== undefined && !isOtherCompany(whose, stream.company)) states.set(name, state);
    }
  }
  return states;
}

/** Null: the row is damaged. */
function knownState(body: string): EntityState | null {
  try {
    const state = readEntityState('', body);
    JSON.parse(state.text);
    return state;
  } catch {
    return null;
  }
}

/** The predecessor's key of an entity. */
function oldKey(
  { key, after = 'null' }: FoundChange,
  {
    old,
    stream,
    path,
  }: {
    readonly old: CollectionStream;
    readonly stream: CollectionStream;
    readonly path: string | null;
  },
): string {
  const [kind, id, ...part] = JSON.parse(key) as readonly string[]; // see entities.ts
  const shared = path === null ? undefined : valueAt(JSON.parse(after) as Json, path);
  const isOther = typeof shared === 'string' || typeof shared === 'number';
  const isEntity = kind === stream.entity.kind;
  const name = isEntity && part.length === 0 && isOther ? String(shared) : id;
  return JSON.stringify([isEntity ? old.entity.kind : kind, name, ...part]);
}

function isOtherCompany(one: string | null | undefined, other: string | undefined): boolean {
  return typeof one === 'string' && other !== undefined && one !== other;
}

/** The new entity with the predecessor's values; null: no common field differs. */
function withOldValues(
  after: string,
  before: string,
  {
    folded: [was, is],
    sides,
  }: {
    readonly folded: readonly [Folded, Folded];
    readonly sides: SideOfPair['pairing']['sides'];
  },
): string | null {
  const differing = new Set(
    Object.keys(is).filter((path) => {
      const there = was[path];
      return there !== undefined && there.slice(1) !== is[path]?.slice(1);
    }),
  );
  if (differing.size === 0) return null;
  const values = new Map(leavesOf(parseExact(before), sides.old.rules));
  const visit = (value: ExactJson, path: string): ExactJson => {
    if (isExactObject(value)) {
      const members = Object.entries(value).map(([name, inner]) => {
        const folded = foldedName(name);
        return [name, visit(inner, path === '' ? folded : `${path}.${folded}`)] as const;
      });
      return Object.fromEntries(members) as ExactJson;
    }
    const named = renamedPath(path, sides.new.rules.rename);
    return differing.has(named) ? (values.get(named) ?? value) : value;
  };
  return JSON.stringify(visit(parseExact(after), ''));
}

type Folded = Readonly<Record<string, string>>;

function fold(text: string, rules: FoldRules): Folded {
  return foldRecord(JSON.parse(text) as Json, rules);
}

/** Leaves by folded path, in the predecessor's names. */
function* leavesOf(
  value: ExactJson,
  rules: FoldRules,
  path = '',
): Generator<readonly [string, ExactJson]> {
  if (isExactObject(value)) {
    for (const [name, inner] of Object.entries(value)) {
      const folded = foldedName(name);
      yield* leavesOf(inner, rules, path === '' ? folded : `${path}.${folded}`);
    }
    return;
  }
  const named = renamedPath(path, rules.rename);
  if (!isIgnoredPath(named, rules.ignore)) yield [named, value];
}
