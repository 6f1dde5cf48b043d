// The changes of a firewall, to the byte: their uids and records are in archives and SIEMs, so an upgrade repeats
// nothing. The lines beside this file were written by the code from before the engine read collections.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { firewallSource } from '../../connectors/sources/firewall.ts';
import type { Upstream } from '../../src/contracts/upstream.ts';
import { aCollection, aSpool, hourMs, quickly } from '../list/reading.ts';
import { manualClock } from '../support/manual-clock.ts';
import { settingsOf } from '../support/plain-upstream.ts';

const base = '/api/firewall/v1/companies/c-1';

/** What is served at one reading: texts, as upstream would send them. */
interface Served {
  readonly objects: readonly string[];
  readonly policies: readonly { readonly listed: string; readonly detail: string }[];
}

const edge = (rules: string, nat: string) =>
  `{"id":"p1","name":"Edge","mode":1.0,"forward_rules":[${rules}],"nat_rules":[${nat}],"rule_count":99}`;
const [r1, r2, r3] = [
  '{"id":"r1","action":"allow","port":443}',
  '{ "rule_id":"r2" , "action":"deny"}',
  '{"id":9007199254740993001,"name":"big","n":1e3}',
];
const listed = '{"id":"p1","name":"Edge","rule_count":3,"owner":null}';
const inner = {
  listed: '{"policy_id":7,"name":"In"}',
  detail: '{"data":{"policy_id":7,"Rules":[]}}',
};

const readings: readonly Served[] = [
  {
    objects: [
      '{"id":"o1","name":"n","x":1.0}',
      '{"id":17,"v":[1,2]}',
      '{"v":"no id"}',
      '{"v":"no id"}',
    ],
    policies: [{ listed, detail: edge(`${r1},${r2}`, '') }, inner],
  },
  {
    objects: [
      '{"id":"o1","name":"n","x":1.00}',
      '{"id":17,"v":[2,1]}',
      '{"v":"no id"}',
      '{"object_id":"o2"}',
    ],
    policies: [{ listed, detail: edge(`${r3},${r1},${r2}`, r1) }, inner],
  },
  {
    objects: ['{"id":17,"v":[2,1],"updated_at":"later"}', '{"object_id":"o2","name":"Neu é"}'],
    policies: [{ listed, detail: edge(`${r1},${r3}`, '{"x":1},{"x":1}') }],
  },
  {
    objects: ['{"id":17,"v":[2,1]}', '{"object_id":"o2"}'],
    policies: [{ listed, detail: edge(r1, '') }],
  },
  {
    objects: ['{"id":17,"v":[2,1]}', '{"object_id":"o2"}'],
    policies: [{ listed, detail: edge(r1, '') }],
  },
];

/** All reports of the readings, with a fixed epoch and clock. */
async function reported(resource: 'objects' | 'policies', baseline: 'summary' | 'full') {
  let served = readings[0];
  const upstream: Upstream = {
    name: 'ops',
    api: 'services',
    baseUrl: 'https://svc.example.com',
    companies: ['c-1'],
    async get({ path }) {
      const { objects = [], policies = [] } = served ?? {};
      const lists: Record<string, readonly string[]> = {
        [`${base}/objects`]: objects,
        [`${base}/policies`]: policies.map((policy) => policy.listed),
      };
      const [, id] = /\/policies\/(.+)$/.exec(path) ?? [];
      const detail = policies.find((policy) =>
        policy.detail.includes(`id":${id === '7' ? 7 : `"${id}"`}`),
      );
      const body = lists[path] ? `{"data":[${lists[path].join(',')}]}` : (detail?.detail ?? '{}');
      return { outcome: 'ok', url: 'http://upstream/', body: Buffer.from(body), headers: {} };
    },
  };
  const streams = firewallSource.streams(settingsOf(firewallSource), { name: 'fw', upstream });
  const stream = streams.find(({ name }) => name === `fw/c-1/${resource}`);
  if (stream?.kind !== 'collection') throw new Error('no such stream');
  const spool = await aSpool();
  const checkpoint = {
    ...{ version: 1, kind: 'snapshot', fingerprint: stream.fingerprint, epoch: 'an-epoch' },
    ...{ generation: 0, baseline: 'open', incomplete: 0, scopeLost: false, suspect: false },
  };
  await spool.append({ stream: stream.name, pages: [], checkpoint });
  const clock = manualClock();
  const brake = { share: 1, count: 100 };
  const collection = await aCollection(clock, stream, {
    spool,
    reading: { ...quickly, brake, baseline, removalsAfter: 1 },
  });
  const lines: string[] = [];
  for (served of readings) {
    await collection.poll();
    for (const { uid, text } of await collection.changes()) lines.push(`${uid} ${text}`);
    await clock.advance(hourMs);
  }
  return lines;
}

test('the uid and the record of each change do not vary', async () => {
  const lines = [
    ...(await reported('objects', 'summary')),
    ...(await reported('policies', 'summary')),
    ...(await reported('policies', 'full')),
  ];

  const before = readFileSync(new URL('firewall-events.txt', import.meta.url), 'utf8');
  expect(`${lines.join('\n')}\n`).toBe(before);
});
