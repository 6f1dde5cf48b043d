// The invented company of the sandbox: its people, agents, sites and addresses. The tables are fixed, so the same
// people occur in audit events, logs and firewall descriptions, and a reader recognises them. Public addresses are from
// the documentation ranges (RFC 5737, RFC 3849), host names from example domains (RFC 2606), so they belong to no real
// party.
import type { Random } from './random.ts';

/** A person with access to the platform. */
export interface Admin {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly role: string;
}

/** An autonomous agent and its permissions. */
export interface Agent {
  readonly id: string;
  readonly name: string;
  readonly replicates: string;
  readonly autonomy: 'propose' | 'act_with_approval';
}

/** A site as `/v1/sites` serves it. */
export interface Site {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly status: string;
  readonly ztna: boolean;
  readonly bandwidth_mbps: number;
  readonly ha: boolean;
}

export const ADMINS: readonly Admin[] = [
  ['Zoë Müller', 'zoe.mueller', 'security_admin'],
  ['Łukasz Nowak', 'l.nowak', 'network_admin'],
  ['Søren Kjær', 's.kjaer', 'network_admin'],
  ['陳美玲', 'meiling.chen', 'soc_analyst'],
  ['Nguyễn Thị Hương', 'huong.nguyen', 'soc_analyst'],
  ["Siobhán O'Brien", 'siobhan.obrien', 'owner'],
  ['Ana María Peña', 'ana.pena', 'security_admin'],
  ['Jürg Brönnimann', 'juerg.broennimann', 'network_admin'],
  ['Олена Коваль', 'olena.koval', 'soc_analyst'],
  ['محمد الفارسي', 'm.alfarsi', 'auditor'],
  ['Priya Raghunathan', 'priya.r', 'security_admin'],
  ['Grace Hopkins', 'grace.hopkins', 'soc_lead'],
  ['Tomás Ó Súilleabháin', 'tomas.os', 'read_only'],
  ['François Lefèvre', 'f.lefevre', 'network_admin'],
  ['Björk Sigurðardóttir', 'bjork.s', 'auditor'],
  ['佐藤 健', 'ken.sato', 'soc_analyst'],
  ['Dana White-Okafor', 'dana.wo', 'helpdesk'],
  ['Émile "Mo" Martin', 'emile.martin', 'helpdesk'],
].map(([name = '', account = '', role = ''], at) => ({
  id: `adm_${(4021 + at * 17).toString(36)}`,
  name,
  email: `${account}@example.com`,
  role,
}));

export const AGENTS: readonly Agent[] = [
  {
    id: 'agt_fwtune',
    name: 'firewall-tuner',
    replicates: 'weekly rule review',
    autonomy: 'act_with_approval',
  },
  {
    id: 'agt_phish',
    name: 'phish-triage',
    replicates: 'tier-1 phishing triage',
    autonomy: 'act_with_approval',
  },
  {
    id: 'agt_tunnel',
    name: 'tunnel-doctor',
    replicates: 'tunnel flap runbook',
    autonomy: 'act_with_approval',
  },
  { id: 'agt_dlp', name: 'dlp-curator', replicates: 'false positive review', autonomy: 'propose' },
  {
    id: 'agt_access',
    name: 'access-reviewer',
    replicates: 'quarterly access review',
    autonomy: 'propose',
  },
];

export const SITES: readonly Site[] = [
  ['zrh', 'Zürich HQ', 'eu-central'],
  ['gva', 'Genève', 'eu-central'],
  ['waw', 'Warszawa', 'eu-central'],
  ['dub', 'Dublin', 'eu-west'],
  ['par', 'Paris – La Défense', 'eu-west'],
  ['mad', 'Madrid', 'eu-west'],
  ['cph', 'København', 'eu-north'],
  ['nyc', 'New York', 'us-east'],
  ['sfo', 'San Francisco', 'us-west'],
  ['sao', 'São Paulo', 'sa-east'],
  ['tyo', '東京', 'ap-northeast'],
  ['sin', 'Singapore', 'ap-southeast'],
  ['syd', 'Sydney', 'ap-southeast'],
  ['blr', 'Bengaluru', 'ap-south'],
].map(([code = '', name = '', region = ''], at) => ({
  id: `site_${code}01`,
  name,
  region,
  status: at === 9 ? 'degraded' : at === 12 ? 'provisioning' : 'active',
  ztna: at % 3 !== 1,
  bandwidth_mbps: [10_000, 1_000, 1_000, 2_000, 500][at % 5] ?? 500,
  ha: at % 2 === 0,
}));

export const POLICIES: readonly string[] = [
  'finance-ztna',
  'contractor-access',
  'prod-databases',
  'guest-wifi',
  'ot-segmentation',
  'vpn-fallback',
];

export const DLP_RULES: readonly string[] = [
  'iban-outbound',
  'source-code-upload',
  'patient-records',
  'payment-cards',
];

export const USER_AGENTS: readonly string[] = [
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
  'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
  'edgectl/3.14.1 (linux; amd64)',
  'Terraform/1.9.2 (+https://www.terraform.io) terraform-provider-edge/2.3.0',
];

/** A public address of the documentation ranges; one in twelve is IPv6. */
export function publicAddress(random: Random): string {
  if (random.chance(1 / 12)) return `2001:db8:${random.hex(4)}::${1 + random.below(4000)}`;
  return `${random.pick(['192.0.2', '198.51.100', '203.0.113'])}.${1 + random.below(254)}`;
}

/** An address inside a site. */
export function privateAddress(random: Random): string {
  return `10.${10 + random.below(14)}.${random.below(64)}.${1 + random.below(254)}`;
}
