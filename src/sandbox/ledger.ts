// The ledger: everything that the sandbox could have served so far, for tests that check whether an exporter lost,
// invented or altered records. It stores nothing; records are recomputed from their index and equal the served text.
// Stop the growth before comparing.
import type { ChangingWorld } from './assemble.ts';
import type { Collection, SandboxChange } from './collection.ts';
import type { FirewallChange } from './firewall.ts';
import type { FirewallObject, FirewallPolicy } from './firewall-records.ts';
import type { GrowingList } from './lists.ts';
import { timelineOf } from './timelines.ts';
import type { WebhookDelivery } from './webhooks/sender.ts';

/** A record as it is or was served. `id` is null for records without one. */
interface LedgerRecord {
  readonly index: number;
  readonly id: string | null;
  readonly text: string;
}

/** One growing list, by its path. */
export interface LedgerList {
  readonly path: string;
  /** Number of existing records, visible or not yet visible. */
  readonly size: number;
  /** The lowest index that retention has kept. */
  readonly first: number;
  /** The ids of all records that may have been served so far, oldest first. */
  ids(): Iterable<string>;
  /** The same with their texts, including records without an id. */
  records(): Iterable<LedgerRecord>;
  /** The exact JSON text of a record by its id, or null if there is none. */
  textOf(id: string): string | null;
  textAt(index: number): string;
}

/** A company's present firewall configuration, and its changes. */
interface LedgerFirewall {
  readonly objects: readonly FirewallObject[];
  readonly policies: readonly FirewallPolicy[];
  readonly changes: readonly FirewallChange[];
}

/** A collection's present entities, and its changes. */
export interface LedgerCollection {
  /** The name of an entity, such as `host`. */
  readonly kind: string;
  readonly path: string;
  readonly company: string | null;
  /** The present entities by id, each with all its fields. */
  entities(): ReadonlyMap<string, object>;
  /** Every change so far, oldest first, including those that only the audit trail reports. */
  changes(): Iterable<SandboxChange>;
  /** The entity before and after a change; null if it did not exist. */
  sidesOf(change: SandboxChange): readonly [before: object | null, after: object | null];
  /** The timeline of an incident or a ticket, even after its deletion; empty for other kinds. */
  timeline(id: string): readonly object[];
}

/** Everything that could have been served up to now. */
export interface Ledger {
  readonly lists: readonly LedgerList[];
  /** The list served at a path; throws for a path that serves none. */
  list(path: string): LedgerList;
  /** A company's firewall; throws for an unknown company. */
  firewall(company: string): LedgerFirewall;
  readonly collections: readonly LedgerCollection[];
  /** The collection of a path; throws for a path that has none. */
  collection(path: string): LedgerCollection;
  /** The newest 20,000 webhook deliveries and their outcomes, oldest first. */
  deliveries(): readonly WebhookDelivery[];
}

/** The ledger over a sandbox's world. */
export function ledgerOf(
  world: ChangingWorld,
  deliveries: () => readonly WebhookDelivery[],
  now: () => number,
): Ledger {
  const { firewalls } = world;
  const lists = [...world.lists.values()].map(ledgerList);
  const collections = [...world.collections.values()].map(ledgerCollection);
  return {
    lists,
    list(path) {
      const found = lists.find((list) => list.path === path);
      if (found === undefined) throw new Error(`the sandbox serves no growing list at ${path}`);
      return found;
    },
    firewall(company) {
      const firewall = firewalls.get(company);
      if (firewall === undefined) throw new Error(`the sandbox has no company ${company}`);
      const nowMs = now();
      return {
        objects: firewall.objects(nowMs),
        policies: firewall.policies(nowMs),
        changes: firewall.changes(nowMs),
      };
    },
    deliveries,
    collections,
    collection(path) {
      const found = collections.find((collection) => collection.path === path);
      if (found === undefined) throw new Error(`the sandbox has no collection ${path}`);
      return found;
    },
  };
}

function ledgerCollection(collection: Collection): LedgerCollection {
  const { kind, path, company } = collection.plan;
  return {
    kind,
    path,
    company,
    entities: () =>
      new Map(
        collection
          .keys()
          .map((index) => [collection.idOf(index), collection.entity(index) ?? {}] as const),
      ),
    changes: () => collection.changes(),
    sidesOf: (change) => collection.sidesOf(change),
    timeline(id) {
      const index = collection.indexOf(id);
      const moment = index === null ? null : collection.moment(index);
      return moment === null ? [] : timelineOf(kind, moment);
    },
  };
}

function ledgerList(list: GrowingList): LedgerList {
  const idAt = (index: number) => list.idTextAt(index)?.replaceAll('"', '') ?? null;
  function* indices(): Generator<number> {
    const size = list.size();
    for (let index = 0; index < size; index += 1) if (list.visible(index)) yield index;
  }
  return {
    path: list.path,
    get size() {
      return list.size();
    },
    get first() {
      return list.first();
    },
    *ids() {
      for (const index of indices()) {
        const id = idAt(index);
        if (id !== null) yield id;
      }
    },
    *records() {
      for (const index of indices()) yield { index, id: idAt(index), text: list.textAt(index) };
    },
    textOf(id) {
      const index = list.indexOf(id);
      return index === null ? null : list.textAt(index);
    },
    textAt: (index) => list.textAt(index),
  };
}
