// Builds what a sandbox serves from the options it was started with: the growing lists, a firewall
// per company, the token desk. Only here is it decided how fast which list grows.
import { auditRecord } from './audit-records.ts';
import type { ListBehaviour } from './behaviour.ts';
import { Firewall } from './firewall.ts';
import { Growth } from './growth.ts';
import { GrowingList } from './lists.ts';
import { logRecords } from './log-records.ts';
import type { SandboxOptions } from './options.ts';
import { saltOf } from './random.ts';
import { LOG_LISTS, logPath } from './services-api.ts';
import { SANDBOX_CREDENTIALS, Tokens } from './tokens.ts';
import { AUDIT_PATH } from './unified-api.ts';

/** What a sandbox was asked to be, with the defaults that everything depends on filled in. */
export interface Plan {
  readonly options: SandboxOptions;
  readonly now: () => number;
  readonly epochMs: number;
  readonly seed: number;
}

const DAY_LIFETIME_S = 43_200;
const HOUR_LIFETIME_S = 3_600;

/** Each log list's part of the logs' growth, and of their number at the start. */
const LOG_SHARES = {
  events: { kind: null, growth: 0.63, start: 1 },
  web: { kind: 'web', growth: 0.33, start: 1 },
  all: { kind: 'ids', growth: 0.04, start: 0.02 },
} as const;

/** The companies of a sandbox. */
export function companiesOf({ companies = ['c-1', 'c-2'] }: Plan['options']): readonly string[] {
  return companies;
}

/** Records per second of one list, when audit events come at `perS`. */
export function rateOf(path: string, perS: number, companies: number): number {
  if (path === AUDIT_PATH) return perS;
  const share = LOG_LISTS.find((list) => path.endsWith(`/${list}`));
  return share === undefined ? 0 : (3 * perS * LOG_SHARES[share].growth) / companies;
}

/** Audit events, and each company's logs, by the path they are served at. */
export function growingLists(
  plan: Plan,
  behaviour: (path: string) => ListBehaviour,
): Map<string, GrowingList> {
  const { options, epochMs, now, seed } = plan;
  const { events = 500, rate = 2 } = options;
  const companies = companiesOf(options);
  const growth = (path: string, start: number) =>
    new Growth(start, epochMs, rateOf(path, rate, companies.length));
  const shared = { seed, now, behaviour };
  const audit = new GrowingList({
    ...shared,
    path: AUDIT_PATH,
    prefix: 'evt',
    growth: growth(AUDIT_PATH, events),
    record: auditRecord,
  });
  const logs = companies.flatMap((company) =>
    LOG_LISTS.map((name) => {
      const path = logPath(company, name);
      const { kind, start } = LOG_SHARES[name];
      return new GrowingList({
        ...shared,
        path,
        prefix: name === 'events' ? 'log' : name === 'web' ? 'web' : 'alert',
        growth: growth(path, Math.ceil((options.logs ?? events) * start)),
        record: logRecords(company, kind),
      });
    }),
  );
  return new Map([audit, ...logs].map((list) => [list.path, list]));
}

/** A firewall configuration per company. */
export function firewallsOf({ options, epochMs, seed }: Plan): Map<string, Firewall> {
  const everyMs = (options.firewallEveryS ?? 120) * 1000;
  const firewalls = companiesOf(options).map((company) => {
    // Shifted per company, so that the companies do not all change in the same second.
    const shiftMs = saltOf(company) % Math.max(1, everyMs);
    const firewall = new Firewall({ seed, company, everyMs, epochMs: epochMs - shiftMs });
    return [company, firewall] as const;
  });
  return new Map(firewalls);
}

/** The token desk with the sandbox's credentials and lifetimes. */
export function tokensOf({ options, now }: Plan): Tokens {
  const { tokenLifetimeS, credentials } = options;
  const lifetimeS = {
    unified: tokenLifetimeS ?? HOUR_LIFETIME_S,
    services: tokenLifetimeS ?? DAY_LIFETIME_S,
  };
  return new Tokens({ ...SANDBOX_CREDENTIALS, ...credentials }, lifetimeS, now);
}
