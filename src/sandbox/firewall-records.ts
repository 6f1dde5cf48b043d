// Firewall objects, policies and rules of one company at the start, and new ones for changes. The document names the
// resources but no fields; the shapes follow common firewalls: objects with addresses or members, policies with ordered
// forward and NAT rules that refer to objects by id. Identifiers are strings, some of them like numbers ("00123"),
// because the document says strings, and a client that coerces them loses zeros.
import { privateAddress, publicAddress, SITES } from './company.ts';
import { Random, saltOf } from './random.ts';

/** A firewall object. Shared ones have the same id and content in each company. */
export interface FirewallObject {
  readonly id: string;
  readonly name: string;
  readonly type: 'host' | 'network' | 'range' | 'group' | 'service';
  readonly addresses: readonly string[];
  readonly members: readonly string[];
  readonly shared: boolean;
  readonly description: string;
  readonly updated_at: string;
}

/** A rule, forward or NAT; its index in the list is its priority. */
export interface FirewallRule {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly action: string;
  readonly source: readonly string[];
  readonly destination: readonly string[];
  readonly services: readonly string[];
  readonly log: boolean;
}

/** A policy with all its rules, as the detail endpoint serves it. */
export interface FirewallPolicy {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly host_ids: readonly string[];
  readonly revision: number;
  readonly updated_at: string;
  readonly forward_rules: readonly FirewallRule[];
  readonly nat_rules: readonly FirewallRule[];
}

/** Fixed, so unchanged objects are the same in every run and company. */
const FIRST_AT = '2026-01-05T08:00:00.000Z';
const SHARED_OBJECTS = 12;
const OWN_OBJECTS = 120;
const POLICIES = 6;
const SHARED_SALT = 0x5a5a;

/** The objects of a company at the start: a dozen shared ones, then its own. */
export function firstObjects(seed: number, company: string): FirewallObject[] {
  const shared = Array.from({ length: SHARED_OBJECTS }, (_, n) => {
    const random = new Random(seed, SHARED_SALT, n);
    return { ...newObject(random, `shared-${n + 1}`, FIRST_AT), shared: true };
  });
  const own = Array.from({ length: OWN_OBJECTS }, (_, n) => {
    const random = new Random(seed, saltOf(company), n);
    return newObject(random, n % 10 === 3 ? `00${100 + n}` : `obj-${1000 + n}`, FIRST_AT);
  });
  return [...shared, ...own];
}

/** The policies of a company at the start. */
export function firstPolicies(seed: number, company: string): FirewallPolicy[] {
  return Array.from({ length: POLICIES }, (_, n) => {
    const random = new Random(seed, saltOf(company), 10_000 + n);
    return newPolicy(random, `pol-${n + 1}`, FIRST_AT);
  });
}

/** A new object. */
export function newObject(random: Random, id: string, at: string): FirewallObject {
  const type = random.pick(['host', 'host', 'network', 'range', 'group', 'service'] as const);
  const site = random.pick(SITES);
  const members =
    type === 'group' ? [`obj-${1000 + random.below(120)}`, `obj-${1000 + random.below(120)}`] : [];
  return {
    id,
    name: `${type}-${site.id.slice(5)}-${random.hex(4)}`,
    type,
    addresses: ADDRESSES[type](random),
    members,
    shared: false,
    description: random.chance(0.2) ? `${site.name}: ticket=4711 | do not remove` : site.name,
    updated_at: at,
  };
}

/** A new rule. */
export function newRule(random: Random, id: string): FirewallRule {
  const object = () => `obj-${1000 + random.below(OWN_OBJECTS)}`;
  return {
    id,
    name: `${random.pick(['allow', 'block', 'permit'])} ${random.pick(['web', 'dns', 'backup', 'voip', 'mgmt'])}`,
    enabled: random.chance(0.9),
    action: random.pick(['accept', 'accept', 'drop', 'reject']),
    source: [object()],
    destination: random.chance(0.3)
      ? ['any']
      : [object(), `shared-${1 + random.below(SHARED_OBJECTS)}`],
    services: [random.pick(['tcp/443', 'udp/53', 'tcp/22', 'icmp/8', 'tcp/8000-8100'])],
    log: random.chance(0.6),
  };
}

/** A new policy with its rules. */
export function newPolicy(random: Random, id: string, at: string): FirewallPolicy {
  const rules = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, n) => newRule(random, `${prefix}-${id.slice(4)}-${n + 1}`));
  const site = random.pick(SITES);
  return {
    id,
    name: `${site.name} perimeter`,
    description: `forward and NAT rules of ${site.name}`,
    host_ids: [`host-${site.id.slice(5)}`],
    revision: 1,
    updated_at: at,
    forward_rules: rules('fr', 10 + random.below(30)),
    nat_rules: rules('nat', 3 + random.below(5)),
  };
}

const ADDRESSES: Readonly<Record<FirewallObject['type'], (random: Random) => string[]>> = {
  host: (random) => [random.chance(0.3) ? publicAddress(random) : privateAddress(random)],
  network: (random) => [`10.${random.below(200)}.${random.below(64)}.0/24`],
  range: (random) => [`10.9.${random.below(64)}.10-10.9.64.${20 + random.below(200)}`],
  group: () => [],
  service: () => [],
};
