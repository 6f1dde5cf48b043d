// Both upstream APIs on loopback, as the two documents describe them, with the data of an invented company that grows
// with time. `sluice sandbox` and the quickstart start it for users; tests use it as an upstream with controlled faults
// and as the ledger for comparisons. Invariant: it shares no code with the export pipeline, so an error in the client
// cannot be hidden by the server. Records are computed from seed and index; memory holds only counters.
import { isDeepStrictEqual } from 'node:util';
import {
  type ChangingWorld,
  changingWorld,
  companiesOf,
  rateOf,
  type SandboxPlan,
  tokensOf,
} from './assemble.ts';
import { behaviourOf, type ListBehaviour } from './behaviour.ts';
import { controlEndpoints, type SandboxControl } from './control.ts';
import { cursorsOf } from './cursors.ts';
import { EARLIER_BASE, EARLIER_ROUTES } from './earlier-api.ts';
import { type FaultScript, Faults } from './faults.ts';
import { type Ledger, ledgerOf } from './ledger.ts';
import { Limits } from './limits.ts';
import { type Described, openApiRoute } from './openapi.ts';
import type { SandboxOptions } from './options.ts';
import { PageCache } from './page-cache.ts';
import { type Responder, respond } from './respond.ts';
import { routerOf, type SandboxRoute, type World } from './routes.ts';
import { SandboxPort } from './sandbox-port.ts';
import { SERVICES_ROUTES } from './services-api.ts';
import type { ClientCredentials, SandboxTokens } from './tokens.ts';
import { Traffic } from './traffic.ts';
import { AUDIT_PATH, UNIFIED_ROUTES } from './unified-api.ts';
import { webhooksRoute } from './webhooks/registrations.ts';
import { Webhooks } from './webhooks/webhooks.ts';

export type { ListBehaviour } from './behaviour.ts';
export type { SandboxChange } from './collection.ts';
export { FaultScriptError, parseFaultScript } from './fault-script.ts';
export type { FaultRule, FaultScript, SandboxFault } from './faults.ts';
export type { FirewallOrder } from './firewall.ts';
export type { SandboxOptions } from './options.ts';

/** A running sandbox. */
export interface Sandbox {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, or https. */
  readonly url: string;
  /** `base_url` of an upstream with `api: unified`. */
  readonly unifiedBaseUrl: string;
  /** `base_url` of an upstream with `api: services`. */
  readonly servicesBaseUrl: string;
  /** The credentials that it accepts at present. */
  readonly credentials: ClientCredentials;
  /** The secret that signs webhooks at present. */
  readonly webhookSecret: string;
  readonly control: SandboxControl;
  /** `base_url` of an upstream for the earlier form with the API key; null: not served. */
  readonly earlierBaseUrl: string | null;
  ledger(): Ledger;
  /** Closes every connection and the server. */
  close(): Promise<void>;
}

const UNIFIED: Described = {
  base: '/v1',
  title: 'Unified Platform REST API (sandbox)',
  tokenPath: '/oauth/token',
};
const SERVICES: Described = {
  base: '',
  title: 'Per-service public API (sandbox)',
  tokenPath: '/api/auth/v1/oauth/v2/token',
};
const PAGE_CACHE_BYTES = 64 * 1024 * 1024;

/** Starts a sandbox on 127.0.0.1. Rejects if the port is in use. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const now = options.now ?? Date.now;
  const plan: SandboxPlan = {
    options,
    now,
    epochMs: options.epochMs ?? now(),
    seed: options.seed ?? 1,
  };
  const script = scriptHolder(plan);
  const changing = changingWorld(plan, script.behaviour);
  const tokens = tokensOf(plan);
  const traffic = new Traffic();
  const webhooks = webhooksOf(plan, changing, script);
  const ledger = ledgerOf(changing, () => webhooks.deliveries(), now);
  const ports: SandboxPort[] = [];
  const control = controlOf({ plan, script, changing, tokens, traffic, webhooks, ports });
  const unified = [...UNIFIED_ROUTES, webhooksRoute(webhooks.registrations)];
  const world: World = {
    seed: plan.seed,
    companies: companiesOf(options),
    lists: changing.lists,
    firewalls: changing.firewalls,
    collections: changing.collections,
    behaviour: script.behaviour,
    cursors: cursorsOf(plan.seed),
    cache: script.cache,
    limitMax: options.pageMax ?? 1_000,
    isSuccessor: options.earlier !== undefined,
    now,
  };
  const responder: Responder = {
    world,
    router: routerOf([
      ...unified,
      openApiRoute(UNIFIED, unified),
      ...SERVICES_ROUTES,
      openApiRoute(SERVICES, options.earlier === undefined ? SERVICES_ROUTES : lasting()),
    ]),
    tokens,
    traffic,
    faults: script.faults,
    limits: script.limits,
    control: controlEndpoints(control, ledger),
  };
  const open = async (port: number, answering: Responder) => {
    const opened = new SandboxPort(options.tls, (request, response) => {
      void respond({ ...answering, refuse: () => opened.refuse() }, request, response);
    });
    ports.push(opened);
    await opened.listen(port);
    return opened;
  };
  const { port, url } = await open(options.port ?? 0, responder);
  let earlierBaseUrl: string | null = null;
  if (options.earlier !== undefined) {
    const earlier = { ...responder, router: routerOf(EARLIER_ROUTES) };
    const opened = await open(options.earlier.port ?? 0, earlier).catch(async (error: unknown) => {
      await ports[0]?.close();
      throw error;
    });
    earlierBaseUrl = `${opened.url}${EARLIER_BASE}`;
  }
  return {
    port,
    url,
    unifiedBaseUrl: `${url}/v1`,
    servicesBaseUrl: url,
    get credentials() {
      return tokens.credentials();
    },
    get webhookSecret() {
      return webhooks.secret();
    },
    control,
    earlierBaseUrl,
    ledger: () => ledger,
    async close() {
      webhooks.close();
      await Promise.all(ports.map((port) => port.close()));
    },
  };
}

/** The services API as the successor of another API: none of its endpoints ends. */
function lasting(): readonly SandboxRoute[] {
  return SERVICES_ROUTES.map((route) => ({ ...route, deprecated: false }));
}

function webhooksOf(
  { options, now }: SandboxPlan,
  { lists }: ChangingWorld,
  { faults }: ScriptHolder,
): Webhooks {
  const audit = lists.get(AUDIT_PATH);
  if (audit === undefined) throw new Error('a sandbox has audit events');
  return new Webhooks({ options: options.webhooks ?? {}, audit, faults, now });
}

interface ScriptHolder {
  readonly faults: () => Faults;
  readonly limits: () => Limits;
  readonly behaviour: (path: string) => ListBehaviour;
  readonly cache: PageCache;
  set(script: FaultScript): void;
}

// A new script replaces everything that depends on it in one step, including the cached pages, which have the old
// behaviour.
function scriptHolder({ options, seed }: SandboxPlan): ScriptHolder {
  const cache = new PageCache(options.pageCacheBytes ?? PAGE_CACHE_BYTES);
  const behaviours = new Map<string, ListBehaviour>();
  let script: FaultScript = {};
  let faults = new Faults([], seed);
  let limits = new Limits([]);
  const set = (next: FaultScript) => {
    // Unchanged ceilings keep their counts.
    if (!isDeepStrictEqual(next.limits, script.limits)) limits = new Limits(next.limits ?? []);
    script = next;
    faults = new Faults(next.rules ?? [], seed);
    behaviours.clear();
    cache.clear();
  };
  set(options.faults ?? {});
  return {
    cache,
    set,
    faults: () => faults,
    limits: () => limits,
    behaviour(path) {
      const known = behaviours.get(path);
      if (known !== undefined) return known;
      const behaviour = behaviourOf(script.lists ?? [], path);
      behaviours.set(path, behaviour);
      return behaviour;
    },
  };
}

interface ControlParts {
  readonly plan: SandboxPlan;
  readonly script: ScriptHolder;
  readonly changing: ChangingWorld;
  readonly tokens: SandboxTokens;
  readonly traffic: Traffic;
  readonly webhooks: Webhooks;
  readonly ports: readonly SandboxPort[];
}

function controlOf(parts: ControlParts): SandboxControl {
  const { plan, script, changing, tokens, traffic, webhooks, ports } = parts;
  const { lists, firewalls, collections, trail } = changing;
  const listAt = (path: string) => {
    const list = lists.get(path);
    if (list === undefined) throw new Error(`the sandbox serves no growing list at ${path}`);
    return list;
  };
  return {
    setFaults(next) {
      script.set(next);
      for (const port of ports) port.reopen();
    },
    faultCounts: () => script.faults().counts(),
    grow: (path, count) => listAt(path).grow(count),
    setRate(perS) {
      const companies = companiesOf(plan.options).length;
      for (const [path, list] of lists) list.setRate(rateOf(path, perS, companies));
    },
    trim: (path, keep) => listAt(path).trimTo(keep),
    changeFirewall(company, order) {
      const firewall = firewalls.get(company);
      if (firewall === undefined) throw new Error(`the sandbox has no company ${company}`);
      return firewall.change(order, plan.now());
    },
    change(path, order) {
      const collection = collections.get(path);
      if (collection === undefined) throw new Error(`the sandbox has no collection ${path}`);
      const changes = collection.change(order);
      for (const change of changes) if (change.explained) trail.claim(change);
      return changes;
    },
    revokeTokens: () => tokens.revoke(),
    rotateSecret: (secret) => tokens.rotateSecret(secret),
    rotateWebhookSecret: (secret) => webhooks.rotateSecret(secret),
    requests: () => traffic.read(),
    resetRequests: () => traffic.reset(),
  };
}
