// Log records as the services API's log endpoints serve them: network flows, web requests, DNS queries and intrusion
// alerts of one company. The document shows neither paths nor fields; the names follow secure web gateways and
// firewalls (client_ip, server_ip, port, bytes, action, rule). Like an audit event, a record is a pure function of its
// identity.
import { type RecordContext, timestamp } from './audit-records.ts';
import { ADMINS, privateAddress, publicAddress, SITES, USER_AGENTS } from './company.ts';
import { Random, saltOf } from './random.ts';

/** The kinds of log record; `mixed` lists hold all of them. */
export type LogKind = 'flow' | 'web' | 'dns' | 'ids';

const RULES = [
  'allow-web',
  'allow-dns',
  'block-tor',
  'allow-office365',
  'default-deny',
  'ot-isolation',
];

/** Computes the exact JSON texts of one company's log records. `kind: null` mixes all kinds. */
export function logRecords(
  company: string,
  kind: LogKind | null,
): (place: RecordContext) => string {
  const salt = saltOf(`${company} ${kind ?? 'mixed'}`);
  return (place) => {
    const random = new Random(place.seed, salt, place.index);
    const drawn = kind ?? kindAt(random);
    const body = {
      timestamp: timestamp(place.timeMs, place.index),
      log_type: drawn,
      company_id: company,
      host_id: `host-${random.pick(SITES).id.slice(5)}`,
      client_ip: privateAddress(random),
      ...BODIES[drawn](random),
    };
    const text = JSON.stringify(body);
    return place.id === null ? text : `{"id":${place.id},${text.slice(1)}`;
  };
}

function kindAt(random: Random): LogKind {
  const at = random.next();
  return at < 0.55 ? 'flow' : at < 0.8 ? 'web' : at < 0.98 ? 'dns' : 'ids';
}

const BODIES: Readonly<Record<LogKind, (random: Random) => object>> = { flow, web, dns, ids };

function flow(random: Random): object {
  const blocked = random.chance(0.12);
  const [port, protocol] = random.pick([
    [443, 'tcp'],
    [443, 'udp'],
    [22, 'tcp'],
    [3389, 'tcp'],
    [53, 'udp'],
    [445, 'tcp'],
    [0, 'icmp'],
  ] as const);
  return {
    client_port: 1024 + random.below(64_000),
    server_ip: random.chance(0.7) ? publicAddress(random) : privateAddress(random),
    port,
    protocol,
    bytes_sent: blocked ? 0 : random.below(4_000_000),
    bytes_received: blocked ? 0 : random.below(90_000_000),
    packets: 1 + random.below(60_000),
    duration_ms: blocked ? 0 : random.below(600_000),
    action: blocked ? 'block' : 'allow',
    rule: { id: `fr-${1 + random.below(40)}`, name: blocked ? 'default-deny' : random.pick(RULES) },
  };
}

function web(random: Random): object {
  const blocked = random.chance(0.08);
  const path = random.pick([
    '/',
    '/login?next=%2Fhome&lang=de',
    '/api/v2/items?q=a|b&x=\\y',
    '/dl/setup.exe',
    '/søk?q=blåbær',
    '/wp-login.php',
  ]);
  return {
    user: random.pick(ADMINS).email,
    method: random.pick(['GET', 'GET', 'GET', 'POST', 'CONNECT']),
    url: `https://${random.pick(['www', 'cdn', 'mail', 'shop'])}.${random.pick(['example.net', 'example.org'])}${path}`,
    status: blocked ? 403 : random.pick([200, 200, 200, 204, 301, 304, 404, 500]),
    category: random.pick(['business', 'news', 'file_sharing', 'social', 'malware', 'unknown']),
    server_ip: publicAddress(random),
    port: 443,
    bytes: random.below(3_000_000),
    user_agent: random.pick(USER_AGENTS),
    referrer: null,
    action: blocked ? 'block' : 'allow',
  };
}

function dns(random: Random): object {
  const name = random.chance(0.03)
    ? `${random.hex(8)}${random.hex(8)}.tunnel.example`
    : random.pick([
        'www.example.org',
        'mail.example.com',
        '_sip._tcp.example.net',
        'xn--bcher-kva.example',
      ]);
  const missing = random.chance(0.07);
  return {
    query: name,
    type: random.pick(['A', 'AAAA', 'HTTPS', 'TXT', 'SRV', 'PTR']),
    rcode: missing ? 'NXDOMAIN' : 'NOERROR',
    answers: missing ? [] : [publicAddress(random)],
    server_ip: '10.10.0.53',
    port: 53,
    protocol: 'udp',
    action: 'allow',
  };
}

function ids(random: Random): object {
  return {
    client_port: 1024 + random.below(64_000),
    server_ip: publicAddress(random),
    port: random.pick([80, 443, 445, 8080]),
    protocol: 'tcp',
    signature_id: 2_000_000 + random.below(48_000),
    signature: random.pick([
      'ET POLICY Outbound "SSH" | on port 443',
      'ET MALWARE Beacon=checkin \\ C2 (POST)',
      'ET SCAN Nmap -sS window 1024',
    ]),
    severity: 1 + random.below(3),
    action: random.pick(['alert', 'drop']),
  };
}
