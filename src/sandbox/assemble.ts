// Builds a sandbox from its start options: the growing lists, a firewall per company, the collections and the audit
// trail of their changes, the tokens. Only this file decides which lists grow how fast, and which collections exist.
import { BLOCK, guarded, plantedAt } from './attacks.ts';
import { auditRecord, type RecordContext } from './audit-records.ts';
import type { ListBehaviour } from './behaviour.ts';
import { Collection, type CollectionPlan } from './collection.ts';
import { EARLIER_AUDIT_PATH, earlierText } from './earlier-api.ts';
import { Firewall } from './firewall.ts';
import { SandboxGrowth } from './growth.ts';
import { GrowingList, LOG_LISTS, logPath } from './lists.ts';
import { logRecords } from './log-records.ts';
import type { SandboxOptions } from './options.ts';
import { saltOf } from './random.ts';
import { changesPlan } from './resources/changes.ts';
import { companyPlan, hostsPlan } from './resources/fleet.ts';
import { incidentsPlan } from './resources/incidents.ts';
import { investigationsPlan } from './resources/investigations.ts';
import { sitesPlan } from './resources/sites.ts';
import { threatListPlan } from './resources/threat-lists.ts';
import { ticketsPlan } from './resources/tickets.ts';
import { webCategoriesPlan } from './resources/web-categories.ts';
import { LOGS_AUDIT_PATH } from './services-api.ts';
import { Steps } from './steps.ts';
import { SANDBOX_CREDENTIALS, SandboxTokens } from './tokens.ts';
import { Trail } from './trail.ts';
import { AUDIT_PATH } from './unified-api.ts';

/** The start options of a sandbox, with defaults filled in. */
export interface SandboxPlan {
  readonly options: SandboxOptions;
  readonly now: () => number;
  readonly epochMs: number;
  readonly seed: number;
}

/** The collections of a sandbox, by path, and the audit trail of their changes. */
export interface ChangingWorld {
  readonly lists: ReadonlyMap<string, GrowingList>;
  readonly firewalls: ReadonlyMap<string, Firewall>;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly trail: Trail;
}

const EVENTS = 500;
const RATE_PER_S = 2;
const CHANGE_EVERY_S = 2;
const DAY_LIFETIME_S = 43_200;
const HOUR_LIFETIME_S = 3_600;

/** Each log list's share of the logs' growth, and of their number at the start. */
const LOG_SHARES = {
  events: { kind: null, growth: 0.63, start: 1 },
  web: { kind: 'web', growth: 0.33, start: 1 },
  all: { kind: 'ids', growth: 0.04, start: 0.02 },
} as const;

/** One list in its three forms. */
const AUDIT_PATHS: readonly string[] = [AUDIT_PATH, EARLIER_AUDIT_PATH, LOGS_AUDIT_PATH];

/** The companies of a sandbox. */
export function companiesOf({ companies, earlier }: SandboxPlan['options']): readonly string[] {
  return companies ?? (earlier === undefined ? ['c-1', 'c-2'] : ['1001', '1002']);
}

/** Records per second of one list, when audit events come at `perS`. */
export function rateOf(path: string, perS: number, companies: number): number {
  if (AUDIT_PATHS.includes(path)) return perS;
  const share = LOG_LISTS.find((list) => path.endsWith(`/${list}`));
  return share === undefined ? 0 : (3 * perS * LOG_SHARES[share].growth) / companies;
}

/** Everything that grows and changes. The audit list is the clock of the other changes. */
export function changingWorld(
  plan: SandboxPlan,
  behaviour: (path: string) => ListBehaviour,
): ChangingWorld {
  const { options, epochMs, now, seed } = plan;
  const { events = EVENTS, rate = RATE_PER_S, attacks = false } = options;
  const start = attacks ? Math.ceil(events / BLOCK) * BLOCK : events;
  const usual = rate === 0 ? 0 : Math.max(1, Math.round(rate * CHANGE_EVERY_S));
  const every = attacks ? BLOCK : (options.changeEvery ?? usual);
  const growth = new SandboxGrowth(start, epochMs, rate);
  const plans = collectionPlans(options);
  const steps = new Steps({ growth, start, every, turns: plans.length, now });
  const collections = plans.map(
    (own, turn) => new Collection(own, { seed, turn, steps, behaviour, now }),
  );
  const firewalls = firewallsOf(plan);
  const trail = new Trail({ growth, start, every, steps, collections, firewalls, behaviour, now });
  const record = (place: RecordContext) => {
    const reported = trail.sceneAt(place.index);
    if (!attacks) return auditRecord(place, reported);
    return auditRecord(place, reported ?? plantedAt(seed, place.index)?.scene, guarded);
  };
  const isEarlier = options.earlier !== undefined;
  const audit = (isEarlier ? AUDIT_PATHS : [AUDIT_PATH]).map(
    (path) =>
      new GrowingList({
        ...{ seed, now, behaviour, path, growth },
        prefix: isEarlier ? null : 'evt',
        record: path === EARLIER_AUDIT_PATH ? (place) => earlierText(record(place)) : record,
      }),
  );
  return {
    lists: new Map([...audit, ...logLists(plan, behaviour)].map((list) => [list.path, list])),
    firewalls,
    collections: new Map(collections.map((collection) => [collection.plan.path, collection])),
    trail,
  };
}

function collectionPlans(options: SandboxPlan['options']): readonly CollectionPlan[] {
  const { entities: start = {} } = options;
  const digits = options.earlier !== undefined;
  const ofCompanies = companiesOf(options).map((company, no) => [
    companyPlan(company),
    hostsPlan(company, no, { start: start.host, digits }),
    ticketsPlan(company, no, { start: start.ticket, digits }),
    threatListPlan('block-list-entries', { company, no, start: start.block_list_entry }),
    threatListPlan('exclusion-list-entries', { company, no, start: start.exclusion_list_entry }),
    changesPlan(company, no, start.change),
  ]);
  return [
    sitesPlan(start.site),
    webCategoriesPlan(start.web_category),
    incidentsPlan(start.incident),
    investigationsPlan(start.investigation),
    ...ofCompanies.flat(),
  ];
}

function logLists(
  { options, epochMs, now, seed }: SandboxPlan,
  behaviour: (path: string) => ListBehaviour,
): readonly GrowingList[] {
  const { events = EVENTS, rate = RATE_PER_S, attacks = false } = options;
  const companies = companiesOf(options);
  return companies.flatMap((company) =>
    LOG_LISTS.map((name) => {
      const path = logPath(company, name);
      const { kind, start } = LOG_SHARES[name];
      // A silent source is one of the planted attacks.
      const isSilent = attacks && name === 'all' && company === companies.at(-1);
      const ratePerS = isSilent ? 0 : rateOf(path, rate, companies.length);
      return new GrowingList({
        seed,
        now,
        behaviour,
        path,
        prefix: name === 'events' ? 'log' : name === 'web' ? 'web' : 'alert',
        growth: new SandboxGrowth(Math.ceil((options.logs ?? events) * start), epochMs, ratePerS),
        record: logRecords(company, kind),
      });
    }),
  );
}

function firewallsOf({ options, epochMs, seed }: SandboxPlan): Map<string, Firewall> {
  const everyMs = (options.firewallEveryS ?? 120) * 1000;
  const firewalls = companiesOf(options).map((company) => {
    // Shifted per company, so that the companies do not all change in the same second.
    const shiftMs = saltOf(company) % Math.max(1, everyMs);
    const firewall = new Firewall({ seed, company, everyMs, epochMs: epochMs - shiftMs });
    return [company, firewall] as const;
  });
  return new Map(firewalls);
}

/** The token endpoint with the sandbox's credentials and lifetimes. */
export function tokensOf({ options, now }: SandboxPlan): SandboxTokens {
  const { tokenLifetimeS, credentials } = options;
  const lifetimeS = {
    unified: tokenLifetimeS ?? HOUR_LIFETIME_S,
    services: tokenLifetimeS ?? DAY_LIFETIME_S,
  };
  return new SandboxTokens({ ...SANDBOX_CREDENTIALS, ...credentials }, lifetimeS, now);
}
