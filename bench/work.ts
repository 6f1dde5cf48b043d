// The work that is measured: seeded pages of 1,000 audit events (or SLUICE_BENCH_PAGE) of about 700 bytes each, nested, with some unicode and
// some characters that formats must escape; or of SLUICE_BENCH_EVENT_BYTES, filled up with changed fields. Pages are numbered, so that a cursor is a number and each event is new.

/** Events on a page. */
export const pageEvents = Number(process.env.SLUICE_BENCH_PAGE ?? 1_000);
const eventBytes = Number(process.env.SLUICE_BENCH_EVENT_BYTES ?? 0);
/** Of a record that is not filled up, about. */
const plainBytes = 700;

const actions = [
  'policy.update',
  'site.create',
  'tunnel.delete',
  'user.login',
  'rule.enable',
  'agent.run.approve',
];
const people = [
  'Anna Schmidt',
  'José Álvarez',
  'Li Wei 李伟',
  'Olu Adeyemi',
  'Zoë O’Neill',
  'Sam "the admin" Roe',
];
const cities = ['Zürich', 'Lagos', 'Osaka', 'Austin', 'Kraków', 'Lima'];
const notes = [
  'changed via portal',
  'a=b | c\\d',
  'two\nlines',
  'approved by agent',
  'rolled back at once',
  'scheduled',
];

/** mulberry32: small, fast and the same everywhere. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Changed fields of about so many bytes together. */
function filling(bytes: number): object {
  if (bytes <= 0) return {};
  const fields = Array.from({ length: Math.ceil(bytes / 100) }, (_, i) => ({
    path: `rules.${i}.destination`,
    before: `${cities[i % cities.length]} 192.0.2.${i % 256}`,
    after: `allowed since revision ${i}`,
  }));
  return { fields };
}

/** One page's records; the same for the same number. */
export function recordsOf(page: number): readonly object[] {
  const next = random(page + 1);
  const one = <T>(list: readonly T[]) => list[Math.floor(next() * list.length)] as T;
  return Array.from({ length: pageEvents }, (_, i) => {
    const n = page * pageEvents + i;
    return {
      id: `evt_${String(n).padStart(12, '0')}`,
      timestamp: new Date(1_790_000_000_000 + n * 37).toISOString(),
      action: one(actions),
      actor: {
        type: 'user',
        id: `usr_${Math.floor(next() * 900)}`,
        name: one(people),
        email: `person${Math.floor(next() * 900)}@example.com`,
        role: 'admin',
      },
      source_ip: `203.0.113.${Math.floor(next() * 250)}`,
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)',
      resource: {
        type: 'policy',
        id: `pol_${Math.floor(next() * 400)}`,
        name: `${one(cities)} edge policy`,
      },
      result: next() < 0.95 ? 'success' : 'failure',
      severity: one(['info', 'low', 'medium', 'high']),
      request_id: `req_${Math.floor(next() * 2 ** 40).toString(16)}`,
      changes: {
        before: { revision: i, rules: 40 },
        after: { revision: i + 1, rules: 41 },
        note: one(notes),
        ...filling(eventBytes - plainBytes),
      },
      network: {
        site: one(cities),
        client_port: 1024 + Math.floor(next() * 60_000),
        bytes: Math.floor(next() * 1e6),
      },
    };
  });
}

/** A page as the unified API sends it; `last` has no next cursor. */
export function pageBody(page: number, last: boolean): Buffer {
  return Buffer.from(
    JSON.stringify({ data: recordsOf(page), next_cursor: last ? null : String(page + 1) }),
  );
}
