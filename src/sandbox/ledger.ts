// The ledger: everything the sandbox could have served so far, for tests that ask whether an
// exporter lost, invented or altered anything. It holds nothing itself; records are made again from
// their index, and are the same text that went over the wire. Stop the growth before comparing.
import type { Firewall, FirewallChange } from './firewall.ts';
import type { FirewallObject, FirewallPolicy } from './firewall-records.ts';
import type { GrowingList } from './lists.ts';

/** A record as it is or was served. `id` is null for records without one. */
export interface LedgerRecord {
  readonly index: number;
  readonly id: string | null;
  readonly text: string;
}

/** One growing list, by the path it is served at. */
export interface LedgerList {
  readonly path: string;
  /** How many records exist, shown or not yet shown. */
  readonly size: number;
  /** The lowest index retention has kept. */
  readonly first: number;
  /** The ids of all records that can have been served so far, oldest first. */
  ids(): Iterable<string>;
  /** The same with their texts, including records without an id. */
  records(): Iterable<LedgerRecord>;
  /** The exact JSON text of a record by its id, or null if there is none. */
  textOf(id: string): string | null;
  textAt(index: number): string;
}

/** A company's firewall configuration as it stands, and how it came to that. */
export interface LedgerFirewall {
  readonly objects: readonly FirewallObject[];
  readonly policies: readonly FirewallPolicy[];
  readonly changes: readonly FirewallChange[];
}

/** What could have been served up to now. */
export interface Ledger {
  readonly lists: readonly LedgerList[];
  /** The list served at a path; throws for a path that serves none. */
  list(path: string): LedgerList;
  /** A company's firewall; throws for an unknown company. */
  firewall(company: string): LedgerFirewall;
}

/** The ledger over a sandbox's lists. */
export function ledgerOf(
  growing: ReadonlyMap<string, GrowingList>,
  firewalls: ReadonlyMap<string, Firewall>,
  now: () => number,
): Ledger {
  const lists = [...growing.values()].map(ledgerList);
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
