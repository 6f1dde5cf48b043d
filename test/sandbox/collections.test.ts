// Sites, hosts, tickets and the like: they change as in the ledger, the audit trail reports each change, and the served
// state is the current one.
import { describe, expect, it } from 'vitest';
import type { Sandbox, SandboxChange, SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { AUDIT, ask, page, stillSandbox, tokenFor, walk } from './client.ts';

const SITES = '/v1/sites';
const HOSTS = '/api/fleet/v1/companies/c-1/hosts';
const TICKETS = '/api/ticketing/v1/companies/c-1/tickets';
const BLOCKED = '/api/threat-protection/v1/companies/c-1/block-list-entries';
const EXCLUDED = '/api/threat-protection/v1/companies/c-2/exclusion-list-entries';
const CHANGES = '/api/self-service/v1/companies/c-1/changes';
const INCIDENTS = '/v1/mc/incidents';
const INVESTIGATIONS = '/v1/intelligence/investigations';

const EPOCH_MS = Date.UTC(2026, 5, 1);

interface Clocked extends Sandbox, AsyncDisposable {
  advance(seconds: number): void;
}

/** A sandbox at the usual rate whose clock a test moves. */
async function clocked(options: SandboxOptions = {}): Promise<Clocked> {
  let nowMs = EPOCH_MS;
  const sandbox = await stillSandbox({ rate: 2, epochMs: EPOCH_MS, now: () => nowMs, ...options });
  const advance = (seconds: number) => {
    nowMs += seconds * 1000;
  };
  return Object.defineProperty(sandbox, 'advance', { value: advance }) as Clocked;
}

function entitiesOf(sandbox: Sandbox): Map<string, Map<string, string>> {
  const texts = sandbox.ledger().collections.map(({ path, entities }) => {
    const all = [...entities()].map(([id, entity]) => [id, JSON.stringify(entity)] as const);
    return [path, new Map(all)] as const;
  });
  return new Map(texts);
}

function changesOf(sandbox: Sandbox): SandboxChange[] {
  return sandbox.ledger().collections.flatMap(({ changes }) => [...changes()]);
}

describe('collections', () => {
  it('create, change and delete entities in each collection within ten minutes', async () => {
    await using sandbox = await clocked();

    sandbox.advance(600);
    const ops = sandbox.ledger().collections.map(({ kind, changes }) => {
      return [kind, [...new Set([...changes()].map(({ op }) => op))].toSorted()];
    });

    expect(ops).toHaveLength(16);
    for (const [kind, seen] of ops) {
      const all = kind === 'company' ? ['updated'] : ['created', 'deleted', 'updated'];
      expect(seen, String(kind)).toEqual(all);
    }
  });

  it('stand at each moment as their changes leave them, and differ in nothing else', async () => {
    await using sandbox = await clocked();
    let before = entitiesOf(sandbox);
    let reported = 0;

    for (let minute = 0; minute < 90; minute += 1) {
      sandbox.advance(60);
      const after = entitiesOf(sandbox);
      for (const { path, changes } of sandbox.ledger().collections) {
        const since = EPOCH_MS + minute * 60_000;
        const fresh = [...changes()].filter(({ at }) => Date.parse(at) > since);
        const touched = new Set(fresh.map(({ id }) => id));
        const ids = new Set(before.get(path)?.keys());
        for (const { op, id } of fresh)
          if (op === 'deleted') ids.delete(id);
          else ids.add(id);
        expect([...(after.get(path)?.keys() ?? [])].toSorted()).toEqual([...ids].toSorted());
        for (const [id, text] of after.get(path) ?? []) {
          if (!touched.has(id)) expect(text).toBe(before.get(path)?.get(id));
          else if (before.get(path)?.has(id)) expect(text).not.toBe(before.get(path)?.get(id));
        }
        reported += fresh.length;
      }
      before = after;
    }

    expect(reported).toBeGreaterThan(2_000);
  });

  it('leave each entity as the ledger says of its last change', async () => {
    await using sandbox = await clocked();
    const { control } = sandbox;
    sandbox.advance(2_000);
    for (const id of sandbox.ledger().collection(BLOCKED).entities().keys()) {
      control.change(BLOCKED, { op: 'updated', id });
    }
    control.change(BLOCKED, { op: 'created', id: 'mine' });
    sandbox.advance(2_000);

    for (const { entities, changes, sidesOf } of sandbox.ledger().collections) {
      const last = new Map([...changes()].map((change) => [change.id, change]));
      const versions = Map.groupBy(changes(), ({ id }) => id).values();
      for (const reported of versions) {
        const updates = reported.filter(({ op }) => op === 'updated').map(({ version }) => version);
        expect(updates).toEqual(updates.map((_, at) => (updates[0] ?? 0) + at));
      }
      const now = entities();
      for (const [id, change] of last) {
        const [before, after] = sidesOf(change);
        expect(after).toEqual(now.get(id) ?? null);
        expect(before === null).toBe(change.op === 'created');
        expect(before).not.toEqual(after);
      }
      expect(last.size).toBeGreaterThan(0);
    }
  });

  it('are the same in a sandbox started later with the same seed and epoch', async () => {
    await using one = await clocked();
    one.advance(3_000);
    await using two = await clocked({ now: () => EPOCH_MS + 3_000_000 });

    expect(entitiesOf(two)).toEqual(entitiesOf(one));
    expect(changesOf(two)).toEqual(changesOf(one));
  });

  it('stand still with the growth', async () => {
    await using sandbox = await clocked();
    sandbox.advance(300);
    sandbox.control.setRate(0);
    const before = entitiesOf(sandbox);

    sandbox.advance(3_000);

    expect(entitiesOf(sandbox)).toEqual(before);
  });

  it('serve the ledger’s entities, each once, in both paging styles', async () => {
    await using sandbox = await clocked();
    sandbox.advance(1_000);
    const ids = (path: string) => [...sandbox.ledger().collection(path).entities().keys()];

    const sites = await walk(sandbox, SITES, 7);
    const excluded = await page(sandbox, EXCLUDED);
    const token = await tokenFor(sandbox, HOSTS);
    const hosts = await page(sandbox, `${HOSTS}?limit=500`, token);
    const host = await ask(sandbox, `/api/fleet/v1/hosts/${ids(HOSTS).at(-1)}`, token);

    expect(sites.ids).toEqual(ids(SITES));
    expect(excluded.data.map(({ entry_id }) => entry_id)).toEqual(ids(EXCLUDED));
    expect(hosts.data.map(({ host_id }) => host_id)).toEqual(ids(HOSTS));
    expect(JSON.parse(host.text)).toEqual(
      [...sandbox.ledger().collection(HOSTS).entities().values()].at(-1),
    );
    expect(Object.keys(JSON.parse(host.text))).toContain('interfaces');
    expect(Object.keys(hosts.data[0] ?? {})).not.toContain('interfaces');
  });

  it('some changes of a host show on its own page alone', async () => {
    await using sandbox = await clocked();
    const id = 'host-zrh01';
    const listed = async () =>
      JSON.stringify((await page(sandbox, HOSTS)).data.find(({ host_id }) => host_id === id));
    const own = async () => (await ask(sandbox, `/api/fleet/v1/hosts/${id}`)).text;
    const [list, detail] = [await listed(), await own()];

    sandbox.control.change(HOSTS, { op: 'updated', id });

    expect(await listed()).toBe(list);
    expect(await own()).not.toBe(detail);
  });

  it('a cursor passes an entity that goes between two pages, and hides no other', async () => {
    await using sandbox = await clocked();
    const all = [...sandbox.ledger().collection(SITES).entities().keys()];

    const { ids } = await walk(sandbox, SITES, 5, (pages) => {
      if (pages === 1) sandbox.control.change(SITES, { op: 'deleted', id: all[2] ?? '' });
    });

    expect(ids).toEqual(all);
  });

  it('an offset scan misses one there, as real offsets do', async () => {
    await using sandbox = await clocked();
    const all = [...sandbox.ledger().collection(TICKETS).entities().keys()];
    const token = await tokenFor(sandbox, TICKETS);

    const first = await page(sandbox, `${TICKETS}?limit=10&offset=0`, token);
    sandbox.control.change(TICKETS, { op: 'deleted', id: all[2] ?? '' });
    const second = await page(sandbox, `${TICKETS}?limit=30&offset=10`, token);

    const ids = [...first.data, ...second.data].map(({ ticket_id }) => ticket_id);
    expect(all.filter((id) => !ids.includes(id))).toEqual([all[10]]);
    expect([first.total, second.total]).toEqual([all.length, all.length - 1]);
  });

  it('hold a hundred thousand entities and serve a page of them at once', async () => {
    await using sandbox = await clocked({ entities: { block_list_entry: 100_000 } });
    sandbox.advance(1_000);

    const { data, total } = await page(sandbox, `${BLOCKED}?limit=1000&offset=99000`);

    expect([data.length, total]).toEqual([expect.any(Number), expect.any(Number)]);
    expect(total).toBeGreaterThanOrEqual(100_000);
    expect(data.length).toBeGreaterThanOrEqual(1_000);
  });

  it('never end where the script says so', async () => {
    const lists = [{ path: TICKETS, endless: true }];
    await using sandbox = await clocked({ faults: { lists } });
    const token = await tokenFor(sandbox, TICKETS);

    const far = await page(sandbox, `${TICKETS}?limit=100&offset=1000000`, token);
    const near = await page(sandbox, `${TICKETS}?limit=100`, token);

    expect(new Set([...near.data, ...far.data].map(({ ticket_id }) => ticket_id)).size).toBe(200);
    expect(far.total).toBeGreaterThan(1_000_000_000);
  });
});

describe('control calls', () => {
  it('create, change and delete the named entities, and many at once', async () => {
    await using sandbox = await clocked();
    const { control } = sandbox;
    const blocked = sandbox.ledger().collection(BLOCKED);
    const { size } = blocked.entities();

    control.change(BLOCKED, { op: 'created', count: 500 });
    control.change(BLOCKED, { op: 'created', id: 'mine' });
    const [mine] = [blocked.entities().get('mine')];
    control.change(BLOCKED, { op: 'updated', id: 'mine' });
    const after = blocked.entities().get('mine');
    control.change(BLOCKED, { op: 'deleted', count: 300 });

    expect(after).toMatchObject({ entry_id: 'mine' });
    expect(after).not.toEqual(mine);
    expect(blocked.entities().size).toBe(size + 201);
    expect(blocked.entities().has('mine')).toBe(false);
    expect([...blocked.changes()].map(({ op }) => op)).toHaveLength(802);
    expect(() => control.change(BLOCKED, { op: 'updated', id: 'mine' })).toThrow(
      'there is no mine',
    );
    expect(() => control.change('/nowhere', { op: 'created' })).toThrow('no collection /nowhere');
  });

  it('an entity that a control call deleted neither changes nor comes back', async () => {
    await using sandbox = await clocked();
    const id = 'site_zrh01';

    sandbox.control.change(SITES, { op: 'deleted', id });
    sandbox.advance(6_000);

    const sites = sandbox.ledger().collection(SITES);
    expect(sites.entities().has(id)).toBe(false);
    expect([...sites.changes()].filter((change) => change.id === id)).toHaveLength(1);
  });

  it('work over HTTP', async () => {
    await using sandbox = await clocked();
    const call = async (path: string, body?: string) => {
      const response = await fetch(`${sandbox.url}/_sandbox/${path}`, {
        ...(body !== undefined && { method: 'POST', body }),
      });
      return { status: response.status, text: await response.text() };
    };

    const made = await call(
      `change?path=${SITES}`,
      '{"op":"created","id":"site_x","explained":false}',
    );
    const refused = await call(`change?path=${SITES}`, '{"op":"moved"}');
    const entities = await call(`ledger/collection?path=${SITES}`);
    const changes = await call(`ledger/changes?path=${SITES}`);
    const timeline = await call(`ledger/timeline?path=${TICKETS}&id=tkt-4711`);

    expect(JSON.parse(made.text)).toMatchObject([
      { op: 'created', id: 'site_x', explained: false },
    ]);
    expect(refused).toEqual({
      status: 400,
      text: 'refused: op must be one of created, updated, deleted\n',
    });
    expect(entities.text.trimEnd().split('\n').at(-1)).toContain('"id":"site_x"');
    expect(JSON.parse(changes.text.trimEnd())).toEqual(JSON.parse(made.text)[0]);
    expect(timeline.text).toMatch(/^\{"id":"tkt-4711-1",/);
  });
});

interface AuditEntry {
  readonly id: string;
  readonly action: string;
  readonly resource: Readonly<Record<string, string>>;
  readonly changes: readonly unknown[];
}

/** The audit trail's entries about the entities of these collections and of the firewall. */
function trailOf(sandbox: Sandbox): AuditEntry[] {
  const { size, records } = sandbox.ledger().list(AUDIT);
  expect(size).toBeGreaterThan(40);
  return [...records()].filter(({ index }) => index >= 40).map(({ text }) => JSON.parse(text));
}

describe('the audit trail', () => {
  it('reports each change once, at its time, with the differences', async () => {
    await using sandbox = await clocked();
    sandbox.advance(1_200);

    const reported = trailOf(sandbox);
    const changes = changesOf(sandbox);

    expect(changes.length).toBeGreaterThan(400);
    for (const { kind, id, at, op, company } of changes) {
      const events = reported.filter(
        (event) =>
          event.resource.id === id &&
          Reflect.get(event, 'timestamp').slice(0, 19) === at.slice(0, 19),
      );
      expect(events, `${kind} ${op} ${id}`).toHaveLength(1);
      expect(events[0]?.action).toMatch(new RegExp(`^${kind}\\.`));
      expect(events[0]?.resource.company_id ?? null).toBe(company);
    }
    const updates = reported.filter(({ action }) => action === 'site.update');
    expect(updates.some((event) => event.changes.length > 0)).toBe(true);
  });

  it('leaves out, or invents, entries as scripted, and the ledger knows', async () => {
    const lists = [
      { path: SITES, unexplained_every: 3 },
      { path: BLOCKED, unseen_every: 2 },
    ];
    await using sandbox = await clocked({ faults: { lists } });
    const before = entitiesOf(sandbox).get(BLOCKED);
    const texts = () => Array.from(sandbox.ledger().list(AUDIT).records(), ({ text }) => text);
    sandbox.advance(1_800);
    const early = texts();
    sandbox.advance(1_800);

    // The report of a change that never was is the same for ever.
    expect(texts().slice(0, early.length)).toEqual(early);
    const reported = new Set(
      trailOf(sandbox).map(({ resource, action }) => `${resource.id} ${action}`),
    );
    const sites = [...sandbox.ledger().collection(SITES).changes()];
    const blocked = [...sandbox.ledger().collection(BLOCKED).changes()];

    const silent = sites.filter(({ explained }) => !explained);
    expect(silent.length).toBeGreaterThan(sites.length / 6);
    const created = silent.filter(({ op }) => op === 'created');
    expect(created.length).toBeGreaterThan(0);
    for (const { id } of created) expect(reported).not.toContain(`${id} site.create`);
    const unseen = blocked.filter(({ seen }) => !seen);
    expect(unseen.length).toBeGreaterThan(10);
    for (const { id } of unseen) expect(reported).toContain(`${id} block_list_entry.update`);
    const entities = [...sandbox.ledger().collection(BLOCKED).entities()];
    const seenAt = new Map(blocked.flatMap(({ id, at, seen }) => (seen ? [[id, at]] : [])));
    const unseenOnly = entities.filter(([id]) => unseen.some((change) => change.id === id));
    expect(unseenOnly.length).toBeGreaterThan(3);
    for (const [id, entity] of unseenOnly) {
      const started = JSON.parse(before?.get(id) ?? '{}').updated_at;
      expect(entity).toMatchObject({ updated_at: seenAt.get(id) ?? started });
    }
  });

  it('reports control calls with the next event, unless set not to', async () => {
    await using sandbox = await clocked({ rate: 0 });
    const { control } = sandbox;

    control.change(SITES, { op: 'deleted', id: 'site_gva01' });
    control.change(SITES, { op: 'updated', id: 'site_zrh01', explained: false });
    control.change(SITES, { op: 'updated', id: 'site_waw01', seen: false });
    const site = sandbox.ledger().collection(SITES).entities().get('site_waw01');
    control.grow(AUDIT, 2);

    expect(trailOf(sandbox).map(({ action, resource }) => `${action} ${resource.id}`)).toEqual([
      'site.decommission site_gva01',
      'site.activate site_waw01',
    ]);
    expect(site).toMatchObject({ name: 'Warszawa', bandwidth_mbps: 1_000 });
  });

  it('reports many control calls one by one, and steps between them', async () => {
    await using sandbox = await clocked();
    for (let n = 0; n < 20; n += 1) {
      sandbox.control.change(SITES, { op: 'created', id: `site_new_${n}` });
    }
    sandbox.advance(60);

    const reported = trailOf(sandbox).map(({ resource }) => resource.id);
    const changes = changesOf(sandbox).map(({ id }) => id);

    expect(changes.length).toBeGreaterThan(40);
    for (const id of changes) expect(reported).toContain(id);
  });

  it('reports the firewall’s changes as well', async () => {
    await using sandbox = await clocked({ firewallEveryS: 60 });
    sandbox.advance(3_600);
    sandbox.control.changeFirewall('c-2', { kind: 'object', op: 'remove', id: 'obj-1001' });
    sandbox.advance(10);

    const reported = trailOf(sandbox).filter(({ action }) => action.startsWith('firewall.'));
    const changes = ['c-1', 'c-2'].flatMap((company) =>
      sandbox
        .ledger()
        .firewall(company)
        .changes.map((change) => ({ company, ...change })),
    );

    expect(reported).toHaveLength(changes.length);
    for (const { company, id, kind, op, policyId } of changes) {
      const match = reported.find(
        ({ action, resource }) =>
          action === `firewall.${kind}.${op}` &&
          resource.id === id &&
          resource.company_id === company,
      );
      expect(match?.resource.policy_id ?? null).toBe(policyId);
    }
  });
});

describe('timelines', () => {
  it.each([
    [INCIDENTS, (id: string) => `${INCIDENTS}/${id}/timeline`],
    [TICKETS, (id: string) => `${TICKETS}/${id}/events`],
  ])('of %s only grow, and are gone some time after their parent', async (path, at) => {
    await using sandbox = await clocked();
    const tokens = await tokenFor(sandbox, path);
    const seen = new Map<string, string[]>();
    const statuses = new Set<number>();

    for (let minute = 0; minute < 40; minute += 1) {
      sandbox.advance(60);
      const ids = sandbox.ledger().collection(path).entities().keys();
      for (const id of new Set([...seen.keys(), ...ids])) {
        const reply = await ask(sandbox, at(id), tokens);
        statuses.add(reply.status);
        if (reply.status !== 200) continue;
        const entries = JSON.parse(reply.text).data.map((entry: object) => JSON.stringify(entry));
        expect(entries.slice(0, seen.get(id)?.length ?? 0)).toEqual(seen.get(id) ?? []);
        seen.set(id, entries);
        const known = sandbox.ledger().collection(path).timeline(id);
        expect(entries).toEqual(known.map((entry) => JSON.stringify(entry)));
      }
      if (statuses.size === 2) break;
    }

    expect([...statuses]).toEqual([200, 404]);
    expect(new Set([...seen.values()].map(({ length }) => length)).size).toBeGreaterThan(2);
  });

  it('incidents that older audit events name have one, others have none', async () => {
    await using sandbox = await stillSandbox();

    const old = await page(sandbox, `${INCIDENTS}/INC-20001/timeline`);
    const none = await ask(sandbox, `${INCIDENTS}/INC-99999/timeline`);

    expect(old.data.length).toBeGreaterThan(1);
    expect(none.status).toBe(404);
  });
});

describe('objects by id', () => {
  it('an investigation gathers evidence until it is closed and gone', async () => {
    await using sandbox = await clocked();
    const id = [...sandbox.ledger().collection(INVESTIGATIONS).entities().keys()].at(-1) ?? '';
    const token = await tokenFor(sandbox, INVESTIGATIONS);
    const counts: number[] = [];
    let status = 200;

    while (status === 200) {
      const reply = await ask(sandbox, `${INVESTIGATIONS}/${id}`, token);
      status = reply.status;
      if (status === 200) counts.push(JSON.parse(reply.text).evidence.length);
      sandbox.advance(60);
    }

    expect(status).toBe(404);
    expect(counts).toEqual(counts.toSorted((one, other) => one - other));
    expect(Math.max(...counts)).toBeGreaterThan(4);
  });

  it('a change runs, then ends for good', async () => {
    await using sandbox = await clocked();
    const token = await tokenFor(sandbox, CHANGES);
    const seen = new Map<string, string[]>();

    for (let at = 0; at < 80; at += 1) {
      sandbox.advance(20);
      const { data } = await page(sandbox, `${CHANGES}?limit=500`, token);
      for (const { change_id: id, status } of data) {
        const statuses = seen.get(String(id)) ?? [];
        if (statuses.at(-1) !== status) seen.set(String(id), [...statuses, String(status)]);
      }
      const newest = data.at(-1);
      const output = await ask(sandbox, `${CHANGES}/${newest?.change_id}/output`, token);
      expect(JSON.parse(output.text)).toEqual(newest);
    }

    const ways = new Set([...seen.values()].map((statuses) => statuses.join(' ')));
    expect(ways).toContain('RUNNING COMPLETED');
    for (const way of ways)
      expect(way).toMatch(/^(QUEUED )?(RUNNING )?(COMPLETED|FAILED)$|^(QUEUED )?RUNNING$|^QUEUED$/);
  });
});

describe('openapi.json', () => {
  it.each([
    ['/v1', SITES],
    ['', HOSTS],
  ])('of %s describes endpoints that answer, and none of the sandbox’s own', async (base, any) => {
    await using sandbox = await stillSandbox();
    const token = await tokenFor(sandbox, any);
    const ids: Readonly<Record<string, string>> = {
      company_id: 'c-1',
      host_id: 'host-zrh01',
      ticket_id: 'tkt-4711',
      policy_id: 'pol-1',
      change_id: '7c9e6679-7425-40de-944b-100000000000',
    };
    const unified: Readonly<Record<string, string>> = {
      investigations: 'inv_700000',
      incidents: 'INC-30000',
    };

    const { openapi, paths } = JSON.parse((await ask(sandbox, `${base}/openapi.json`, token)).text);
    const statuses = await Promise.all(
      Object.keys(paths)
        .filter((path) => paths[path].get !== undefined)
        .map(async (path) => {
          const filled = path.replace(
            /\/(\w+)\/\{(\w+)\}/g,
            (_, list, name) => `/${list}/${ids[name] ?? unified[list]}`,
          );
          const again = filled.replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? '');
          return [path, (await ask(sandbox, base + again, token)).status];
        }),
    );

    expect(openapi).toBe('3.1.0');
    expect(
      Object.values(paths).filter((methods) => Reflect.has(Object(methods), 'post')),
    ).toHaveLength(base === '' ? 1 : 2);
    expect(statuses.filter(([, status]) => status !== 200)).toEqual([]);
    expect(statuses.length).toBeGreaterThan(4);
    expect(Object.keys(paths).join()).not.toMatch(/logs|changes,|changes$/);
    if (base === '') {
      expect(paths['/api/fleet/v1/companies/{company_id}/hosts'].get.deprecated).toBe(true);
    }
  });
});

it('look-ups are the IANA registries', async () => {
  await using sandbox = await stillSandbox();
  const names = async (name: string) => {
    const { data } = await page(sandbox, `/api/firewall/v1/${name}`);
    return new Map(data.map((row) => [row.number, row.name]));
  };

  const [protocols, icmp, icmpv6] = [
    await names('ip-protocols'),
    await names('icmp-types'),
    await names('icmpv6-types'),
  ];

  expect([6, 17, 41, 58, 89, 132, 143].map((n) => protocols.get(n))).toEqual([
    'TCP',
    'UDP',
    'IPv6',
    'IPv6-ICMP',
    'OSPFIGP',
    'SCTP',
    'Ethernet',
  ]);
  expect(protocols.has(61)).toBe(false);
  expect([icmp.get(8), icmp.get(11), icmpv6.get(128), icmpv6.get(135)]).toEqual([
    'Echo',
    'Time Exceeded',
    'Echo Request',
    'Neighbor Solicitation',
  ]);
});
