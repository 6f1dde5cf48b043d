// The scripted pair of upstreams that tests of a succession move between: what it shows is what a config reads today, from each
// side by itself.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runOnceHere } from './cli.ts';
import { type Death, type MovingOptions, startMovingUpstreams } from './moving/upstreams.ts';
import { tempDir } from './temp.ts';

const sources = {
  old_audit: {
    ...{ type: 'logs', upstream: 'old', path: '/audit', time: ['eventTime'] },
    pagination: { style: 'page', page_param: 'page', size_param: 'page_size' },
  },
  new_audit: {
    ...{ type: 'logs', upstream: 'new', path: '/api/logs/v1/audit', time: ['event_time'] },
    pagination: { style: 'cursor' },
  },
  new_per_company: {
    ...{ type: 'logs', upstream: 'new', time: ['event_time'] },
    path: '/api/logs/v1/companies/{company_id}/audit',
    pagination: { style: 'offset' },
  },
  old_tickets: {
    ...{
      type: 'collection',
      upstream: 'old',
      path: '/tickets',
      id: 'ticketId',
      confirm_after: '0s',
    },
    pagination: { style: 'page', page_param: 'page', size_param: 'page_size' },
  },
  new_tickets: { type: 'tickets', upstream: 'new', confirm_after: '0s' },
} as const;

async function aPair(options: MovingOptions = {}) {
  const dir = tempDir();
  const pair = await startMovingUpstreams({ pageMax: 20, ...options });
  const read = async (name: keyof typeof sources) => {
    const out = join(dir, `${name}.ndjson`);
    const config = join(dir, `${name}.yaml`);
    const text = JSON.stringify({
      state: { dir: join(dir, `${name}.state`) },
      upstreams: pair.upstreams,
      sources: { [name]: sources[name] },
      sinks: { disk: { type: 'file', path: out } },
    });
    writeFileSync(config, text);
    const { exitCode, stderr } = await runOnceHere(config);
    return { exitCode, stderr, text: readFileSync(out, 'utf8') };
  };
  return { pair, read };
}

for (const [name, order] of [
  ['old_audit', 'newest_first'],
  ['old_audit', 'oldest_first'],
  ['new_audit', 'newest_first'],
  ['new_audit', 'oldest_first'],
  ['new_per_company', 'newest_first'],
] as const) {
  test(`${name}, ${order}: every record of the ledger is read once, late ones included`, async () => {
    const { pair, read } = await aPair({
      ...{ companies: ['1', '2'], order: { old: order, new: order }, sorted: 'time' },
    });
    pair.addMany(70);
    const first = await read(name);
    const planted = pair.only(name === 'old_audit' ? 'new' : 'old').add();
    pair.addMany(30);
    pair.add({ timeMs: Date.now() - 3_600_000 + 60_500 });
    const { text } = await read(name);
    const { lost, repeated } = pair.count(text);
    expect([first.exitCode, pair.count(first.text).times.size]).toEqual([0, 70]);
    expect({ lost, repeated }).toEqual({ lost: [planted.mark], repeated: [] });
  });
}

for (const name of ['old_tickets', 'new_tickets'] as const) {
  test(`${name}: the one change is read`, async () => {
    const { pair, read } = await aPair();
    for (let id = 1; id <= 45; id += 1) pair.setTicket(id);
    const first = await read(name);
    pair.setTicket(7, { status: 'closed' });
    const { exitCode, text } = await read(name);
    const added = text.slice(first.text.length).split('\n').slice(0, -1);
    const changes = added.filter((line) => line.includes('"closed"'));
    expect([first.exitCode, exitCode, changes.length]).toEqual([0, 0, 1]);
    expect(changes[0]).toContain('"open"');
  });
}

for (const how of [401, 404, 410, 'refused', 'reset'] satisfies Death[]) {
  test(`a side that dies with ${how} answers nothing, and again after it is revived`, async () => {
    const { pair } = await aPair();
    pair.add();
    const { base_url: url, auth } = pair.upstreams.old as {
      base_url: string;
      auth: { api_key: string };
    };
    const get = () =>
      fetch(`${url}/audit`, { headers: { authorization: `Bearer ${auth.api_key}` } })
        .then(({ status }) => status)
        .catch(() => how);
    await pair.die('old', how);
    expect(await get()).toBe(how);
    await pair.revive('old');
    expect(await get()).toBe(200);
    expect(pair.served('old').get('rec-000000')).toBe(1);
  });
}
