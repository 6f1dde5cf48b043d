// What the sandbox planted, and what came out: for each source whether everything is there, once,
// and nothing that never was. What stood too shortly to be read twice may be missing, and then is
// not missed; what came is always judged.

import { isDeepStrictEqual } from 'node:util';
import type { LedgerCollection } from '../../src/sandbox/ledger.ts';
import type { Sandbox, SandboxChange } from '../../src/sandbox/sandbox.ts';
import { companies, type Planted, planted } from './sources.ts';

/** An event as it stands in the file, with what it was made from. */
export interface Written {
  readonly raw_data: string;
  readonly metadata: {
    readonly uid: string;
    readonly log_name: string;
    readonly tenant_uid?: string;
  };
}

/** What is compared. */
export interface Run {
  readonly sandbox: Sandbox;
  readonly begunAt: number;
  readonly events: readonly Written[];
}

/** What was planted and found of one source, and what is wrong with it. */
export interface Account {
  readonly source: string;
  /** Records, changes, entries, versions or deliveries that had to come. */
  readonly owed: number;
  readonly found: number;
  readonly findings: readonly string[];
}

/** A change as its event was made from it. */
interface ToldChange {
  readonly change: 'state' | 'baseline' | SandboxChange['op'];
  readonly entity_kind: string;
  readonly entity_id: string;
  readonly parent_id?: string;
  readonly company_id?: string;
  readonly changed?: readonly string[];
  readonly before?: object;
  readonly after?: object;
}

/**
 * An entity that existed this long was in some readings, also if upstream requested a wait of half a minute meanwhile.
 */
const lastingMs = 45_000;
/** A change whose audit event must come first may be this much later. */
const lateMs = 75_000;
/** What the fault script adds to each site. */
const added = 'schema_version';
/** A host that the fault script has flap for as long as it is in place. */
const flapping = 'host-gva01';

/** All sources. */
export function accountsOf(run: Run): readonly Account[] {
  const every = planted.map((one) => accountOf[one.as](run, one));
  return [...every, ofFirewall(run), ofWebhooks(run)];
}

const accountOf = {
  list: ofList,
  collection: ofCollection,
  timeline: ofTimelines,
  object: ofObjects,
} as const;

/** Pairs of a company, or none, and the path there. */
function pathsOf({ path }: Planted): readonly (readonly [company: string | undefined, string])[] {
  if (!path.includes('{')) return [[undefined, path]];
  return companies.map((company) => [company, path.replace('{company_id}', company)] as const);
}

/** What each event of a source was made from. */
function rawOf({ events }: Run, source: string, company?: string): readonly string[] {
  return events
    .filter(({ metadata: { log_name, tenant_uid } }) => {
      return log_name === source && (company === undefined || tenant_uid === company);
    })
    .map(({ raw_data }) => raw_data);
}

function ofList(run: Run, one: Planted): Account {
  const findings: string[] = [];
  let [owed, found] = [0, 0];
  for (const [company, path] of pathsOf(one)) {
    const reported = counted(rawOf(run, one.source, company));
    for (const { text } of run.sandbox.ledger().list(path).records()) {
      const count = reported.get(text) ?? 0;
      owed += 1;
      if (count === 1) found += 1;
      else findings.push(`${count} times: ${text}`);
      reported.delete(text);
    }
    for (const text of reported.keys()) if (!isOwn(text)) findings.push(`never was: ${text}`);
  }
  return { source: one.source, owed, found, findings };
}

function ofCollection(run: Run, one: Planted): Account {
  const findings: string[] = [];
  let [owed, found] = [0, 0];
  for (const [company, path] of pathsOf(one)) {
    const ledger = run.sandbox.ledger().collection(path);
    const reported = Map.groupBy(
      rawOf(run, one.source, company).flatMap(changeIn),
      ({ entity_id }) => entity_id,
    );
    const made = Map.groupBy(changesIn(ledger), ({ id }) => id);
    for (const [id, changes] of made) {
      if (id === flapping) continue;
      const lasting = changes.filter((_, at) => isLasting(run, changes, at));
      const requested = lasting.filter(
        (change) =>
          isVisible(change, ledger) && (change.op !== 'deleted' || one.source !== 'tickets'),
      );
      const missing = requested.filter(
        (change) => !(reported.get(id) ?? []).some((event) => tells(event, change, ledger)),
      );
      owed += requested.length;
      found += requested.length - missing.length;
      for (const { op, at } of missing) findings.push(`not told: ${op} ${id}, ${at}`);
    }
    for (const [id, events] of reported) {
      const changes = made.get(id) ?? [];
      const later = events.filter(
        ({ change, changed }) => change !== 'state' && changed?.join() !== added,
      );
      if (id === flapping) continue;
      let next = 0;
      for (const event of later) {
        const at = changes.findIndex((change, n) => n >= next && tells(event, change, ledger));
        if (at < 0) findings.push(`never was, or out of turn: ${JSON.stringify(event)}`);
        else next = at + 1;
      }
    }
    for (const [id, entity] of ledger.entities()) {
      const last = reported.get(id)?.at(-1)?.after;
      if (!isWithin(entity, last)) findings.push(`not as it stands: ${id}`);
    }
  }
  return { source: one.source, owed, found, findings };
}

function ofTimelines(run: Run, one: Planted): Account {
  const findings: string[] = [];
  let [owed, found] = [0, 0];
  for (const [company, path] of pathsOf(one)) {
    const ledger = run.sandbox.ledger().collection(path);
    const reported = rawOf(run, one.source, company).map((text) => JSON.parse(text) as object);
    for (const id of parentsOf(run, one, ledger).keys()) {
      const entries = ledger.timeline(id);
      for (const entry of entries) {
        const count = reported.filter((other) => isDeepStrictEqual(other, entry)).length;
        owed += 1;
        if (count === 1) found += 1;
        else findings.push(`${count} times, of ${id}: ${JSON.stringify(entry)}`);
      }
    }
  }
  return { source: one.source, owed, found, findings };
}

function ofObjects(run: Run, one: Planted): Account {
  const findings: string[] = [];
  let [owed, found] = [0, 0];
  for (const [company, path] of pathsOf(one)) {
    const ledger = run.sandbox.ledger().collection(path);
    const reported = rawOf(run, one.source, company).map((text) => JSON.parse(text) as object);
    const known = parentsOf(run, one, ledger);
    for (const [id, changes] of Map.groupBy(changesIn(ledger), (change) => change.id)) {
      const since = known.get(id);
      if (since === undefined) continue;
      for (const [at, change] of changes.entries()) {
        const [, after] = ledger.sidesOf(change);
        if (after === null || !isLasting(run, changes, at, since + lateMs)) continue;
        const count = reported.filter((other) => isDeepStrictEqual(other, after)).length;
        owed += 1;
        if (count === 1) found += 1;
        else findings.push(`${count} times: ${JSON.stringify(after)}`);
      }
    }
  }
  return { source: one.source, owed, found, findings };
}

/** The firewall as the events laid over each other draw it. */
function ofFirewall(run: Run): Account {
  const findings: string[] = [];
  let owed = 0;
  for (const company of companies) {
    const drawn = new Map<string, object | undefined>();
    for (const event of rawOf(run, 'firewall', company).flatMap(changeIn)) {
      const key = `${event.entity_kind} ${event.entity_id}`;
      if (event.change === 'deleted') drawn.delete(key);
      else drawn.set(key, event.after);
    }
    const { objects, policies } = run.sandbox.ledger().firewall(company);
    const rules = policies.flatMap((policy) => [...policy.forward_rules, ...policy.nat_rules]);
    const statusView = new Map<string, object>([
      ...objects.map((object) => [`object ${object.id}`, object] as const),
      ...rules.map((rule) => [`rule ${rule.id}`, rule] as const),
      ...policies.map(({ id }) => [`policy ${id}`, { id }] as const),
    ]);
    owed += statusView.size;
    for (const [key, entity] of statusView) {
      if (!isWithin(entity, drawn.get(key))) findings.push(`not as it stands: ${company} ${key}`);
    }
    for (const key of drawn.keys()) {
      if (!statusView.has(key)) findings.push(`gone, and not told: ${company} ${key}`);
    }
  }
  return { source: 'firewall', owed, found: owed - findings.length, findings };
}

/** Each delivery that was taken, once; none that upstream has not signed. */
function ofWebhooks(run: Run): Account {
  const reported = counted(rawOf(run, 'hooks'));
  const findings: string[] = [];
  const taken = new Map<string, Set<string>>();
  for (const { id, event, genuine, state } of run.sandbox.ledger().deliveries()) {
    if (!genuine || state !== 'accepted') continue;
    taken.set(event.body, (taken.get(event.body) ?? new Set()).add(id));
  }
  let owed = 0;
  for (const [body, ids] of taken) {
    owed += ids.size;
    const count = reported.get(body) ?? 0;
    if (count !== ids.size) findings.push(`${count} of ${ids.size} times: ${body}`);
    reported.delete(body);
  }
  for (const body of reported.keys()) if (!isOwn(body)) findings.push(`nobody sent it: ${body}`);
  return { source: 'hooks', owed, found: owed - findings.length, findings };
}

/** The ids that a source's config leads to, and since when, epoch milliseconds. */
function parentsOf(run: Run, { source }: Planted, ledger: LedgerCollection): Map<string, number> {
  const since = new Map<string, number>();
  if (source === 'ticket_events') {
    for (const id of ledger.entities().keys()) since.set(id, run.begunAt);
    for (const { id, at } of changesIn(ledger)) since.set(id, Date.parse(at));
    return since;
  }
  if (source === 'changes') {
    const path = `/api/threat-protection/v1/companies/${ledger.company}/block-list-entries`;
    for (const entry of run.sandbox.ledger().collection(path).entities().values()) {
      const { change_id: id, created_at: at } = entry as {
        change_id?: string;
        created_at?: string;
      };
      if (typeof id === 'string') since.set(id, Math.max(run.begunAt, Date.parse(at ?? '') || 0));
    }
    return since;
  }
  for (const { text } of run.sandbox.ledger().list('/v1/audit/events').records()) {
    const { resource, timestamp } = JSON.parse(text) as {
      resource?: { type?: string; id?: string };
      timestamp?: string;
    };
    if (resource?.type !== ledger.kind || resource.id === undefined) continue;
    const at = Math.max(run.begunAt, Date.parse(timestamp ?? '') || 0);
    since.set(resource.id, Math.min(at, since.get(resource.id) ?? at));
  }
  return since;
}

/** Changes that did happen, oldest first. */
function changesIn(ledger: LedgerCollection): readonly SandboxChange[] {
  return [...ledger.changes()].filter(({ seen }) => seen);
}

/** It came about after the run began, and stood long enough from when it could be known. */
function isLasting(
  { begunAt }: Run,
  changes: readonly SandboxChange[],
  at: number,
  since = 0,
): boolean {
  const from = Date.parse(changes[at]?.at ?? '');
  const to = changes[at + 1] === undefined ? Date.now() : Date.parse(changes[at + 1]?.at ?? '');
  const isStanding = changes[at + 1] === undefined;
  return from > begunAt && (isStanding || to - Math.max(from, since) >= lastingMs);
}

/** More than what is not compared has changed. */
function isVisible(change: SandboxChange, ledger: LedgerCollection): boolean {
  const [before, after] = ledger.sidesOf(change);
  return before === null || after === null || !isWithin(before, after);
}

/** True if an event reports this change, with the entity before and after. */
function tells(event: ToldChange, change: SandboxChange, ledger: LedgerCollection): boolean {
  if (event.change !== change.op) return false;
  const [before, after] = ledger.sidesOf(change);
  if (event.change === 'deleted') return before !== null;
  return after !== null && isWithin(after, event.after);
}

/** What the fault script adds does not differ, and neither do times of a last sign of life. */
function isWithin(entity: object, reported: object | undefined): boolean {
  if (reported === undefined) return false;
  const { last_seen: _, updated_at: __, ...own } = entity as Record<string, unknown>;
  const members = reported as Readonly<Record<string, unknown>>;
  return Object.entries(own).every(([name, value]) => isDeepStrictEqual(members[name], value));
}

function changeIn(text: string): readonly ToldChange[] {
  const record = JSON.parse(text) as ToldChange | { readonly condition: string };
  return 'change' in record ? [record] : [];
}

/** What sluice itself has to say about a source. */
function isOwn(text: string): boolean {
  return 'condition' in (JSON.parse(text) as object);
}

function counted(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}
