// What is wrong with a move in a config, as `check` reports it: the path, the value found, and the next step.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const auth = { client_id: 'a', client_secret: '${env:S}', scope: 's' };
const upstreams = {
  old: {
    ...{ api: 'unified', ends: '2031-05-06', base_url: 'https://old.example/v1' },
    ...{ auth: { api_key: '${env:S}' }, companies: ['1'] },
  },
  new: { api: 'services', base_url: 'https://new.example', companies: ['1'], auth },
};
const audit = { type: 'logs', upstream: 'old', path: '/companies/{company_id}/audit' };
const late = (source: string, more = {}) => ({
  ...{ type: 'logs', upstream: 'new', path: '/api/logs/v1/companies/{company_id}/audit' },
  succeeds: { source },
  ...more,
});
const tickets = { type: 'tickets', upstream: 'new', succeeds: { source: 'audit' } };
const sinks = { disk: { type: 'file', path: '/tmp/a' }, far: { type: 'file', path: '/tmp/b' } };

async function checked(sources: object, top: object = {}) {
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(file, JSON.stringify({ upstreams, sources: { audit, ...sources }, sinks, ...top }));
  return await runHere(['check', '-c', file], { S: 'secret' });
}

test.each<[what: string, sources: object, top: object, path: string, words: readonly string[]]>([
  [
    'successors of each other',
    { late: late('later'), later: late('late') },
    {},
    'sources.late.succeeds.source',
    ['late succeeds later succeeds late', 'remove one succeeds'],
  ],
  [
    'itself',
    { late: late('late') },
    {},
    'sources.late.succeeds.source',
    ['cannot succeed itself', 'name the source of the API that ends'],
  ],
  [
    'two successors',
    { late: late('audit'), later: late('audit') },
    {},
    'sources.later.succeeds.source',
    ['late succeeds audit already', 'remove one succeeds'],
  ],
  [
    'another kind',
    { late: tickets },
    {},
    'sources.late.succeeds.source',
    ['audit reads a list and late reads a collection', 'same kind'],
  ],
  [
    'an unknown source',
    { late: late('audti') },
    {},
    'sources.late.succeeds.source',
    ['"audti"', 'did you mean audit', 'remove succeeds'],
  ],
  [
    'fewer sinks',
    { late: late('audit') },
    {
      routes: [
        { from: ['audit'], to: ['disk', 'far'] },
        { from: ['late'], to: ['disk'] },
      ],
    },
    'sources.late.succeeds.source',
    ['audit is routed to far and late is not', 'route it there'],
  ],
  [
    'an end that is no date',
    {},
    { upstreams: { ...upstreams, old: { ...upstreams.old, ends: '31.12.2026' } } },
    'upstreams.old.ends',
    ['"31.12.2026"', 'never', '2026-12-31T12:00:00Z', 'remove ends'],
  ],
])('%s is an error with its path, value and next step', async (_, sources, top, path, words) => {
  const { exitCode, stderr } = await checked(sources, top);

  expect(exitCode).toBe(2);
  for (const word of [path, ...words]) expect(stderr).toContain(word);
});

test.each<[what: string, sources: object, top: object, words: readonly string[]]>([
  [
    'each',
    {
      late: late('audit'),
      times: {
        type: 'incident_timeline',
        upstream: 'old',
        path: '/tickets/{parent_id}/events',
        each: { of: 'audit', id: 'id' },
      },
    },
    {},
    ['sources.times.each.of names audit', 'each: { of: late }'],
  ],
  [
    'watch',
    { late: late('audit'), sites: { type: 'sites', upstream: 'old' } },
    { watch: { drift: { changes: ['sites'], trail: ['audit'] } } },
    ['watch.drift.trail names audit and not late', 'add late'],
  ],
  [
    'a filter',
    { late: late('audit') },
    {
      routes: [
        { from: ['audit'], to: ['disk', 'far'], where: 'event.metadata.log_source == "audit"' },
      ],
    },
    ['routes[0].where names audit', 'change the filter before the cutover'],
  ],
  [
    'an unknown company',
    { late: late('audit') },
    { upstreams: { ...upstreams, new: { ...upstreams.new, companies: ['1', '9'] } } },
    ['sources.late: audit does not read company 9', 'patience'],
  ],
  [
    'an end in the past',
    {},
    { upstreams: { ...upstreams, old: { ...upstreams.old, ends: '2026-01-31' } } },
    [
      'upstream old ended on 2026-01-31: set by upstreams.old.ends',
      'succession plan',
      'docs/moving.md',
      'set upstreams.old.ends to a date or to never',
    ],
  ],
])('%s is a note with the next step', async (_, sources, top, words) => {
  const { exitCode, stdout, stderr } = await checked(sources, top);

  expect([exitCode, stderr]).toEqual([0, '']);
  for (const word of words) expect(stdout).toContain(word);
});
