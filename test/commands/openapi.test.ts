// An upstream's description compared with the config's requests: the notes, and that no description can fail a check.

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { describedStreams } from '../../src/commands/shared/openapi.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { FaultScript } from '../../src/sandbox/sandbox.ts';
import { runHere } from '../support/cli.ts';
import { madeUpList } from '../support/made-up-list.ts';
import { aSetup } from './a-setup.ts';

const path = '/companies/{company_id}/things';
const stream = madeUpList(() => Promise.reject(new Error('not asked')), {
  request: { path: '/companies/c-1/things', template: path, query: [['status', 'open']] },
});
const parameters = ['status', 'cursor', 'limit'].map((name) => ({ name, in: 'query' }));
const get = { parameters };

describe.each([
  ['all that is asked', { [path]: { get } }, []],
  ['other names in the path', { '/companies/{id}/things': { get } }, []],
  ['the base in its paths', { [`/v1${path}`]: { get } }, []],
  [
    'parameters of the path, by reference',
    {
      [path]: {
        parameters: [{ $ref: '#/components/parameters/Status' }],
        get: { parameters: parameters.slice(1) },
      },
    },
    [],
  ],
  ['no parameters at all', { [path]: { get: {} } }, []],
  [
    'not the path',
    { '/others': { get } },
    [`does not have ${path}`, 'no source here reads: /others'],
  ],
  ['only a POST', { [path]: { post: get } }, ['names no path']],
  ['a deprecated operation', { [path]: { get: { ...get, deprecated: true } } }, ['deprecated']],
  [
    'not a parameter',
    { [path]: { get: { parameters: parameters.slice(0, 2) } } },
    ['no parameter limit'],
  ],
  [
    'a deprecated parameter',
    {
      [path]: {
        get: {
          parameters: parameters.map((one) => ({ ...one, deprecated: one.name === 'status' })),
        },
      },
    },
    ['the parameter status'],
  ],
  [
    'a required parameter',
    {
      [path]: {
        get: {
          parameters: [...parameters, { name: 'from\u001b[31m', in: 'query', required: true }],
        },
      },
    },
    ['requires the parameter from [31m'],
  ],
  ['nonsense', [1, 'x', null] as Json, ['names no path']],
  [
    'nonsense within',
    {
      [path]: {
        get: { parameters: [null, 3, { $ref: '#/components/parameters/__proto__' }, { name: 7 }] },
      },
    },
    [],
  ],
] as [string, Json, string[]][])('a description with %s', (_, paths, reported) => {
  test(`reports ${reported.length}`, () => {
    const components = { parameters: { Status: { name: 'status', in: 'query' } } };
    const notes = describedStreams({ paths, components }, '/v1', [stream]);
    expect(notes).toHaveLength(reported.length);
    for (const [index, text] of reported.entries()) expect(notes[index]).toContain(text);
  });
});

test('a description with a smaller limit, other names and another scope', () => {
  const timed = { ...stream, time: ['when'] };
  const schema = { $ref: '#/components/schemas/Page' };
  const described = {
    paths: {
      [path]: {
        get: {
          parameters: parameters.map((one) =>
            one.name === 'limit' ? { ...one, schema: { type: 'integer', maximum: 7 } } : one,
          ),
          responses: { '200': { content: { 'application/json': { schema } } } },
          security: [{ oauth: ['things:read'] }, { oauth: ['things:read', 'more:read'] }],
        },
      },
    },
    components: {
      schemas: {
        Page: {
          properties: { data: { type: 'array', items: { $ref: '#/components/schemas/Thing' } } },
        },
        Thing: { properties: { thing_id: {}, seen_at: {} } },
        Loop: { $ref: '#/components/schemas/Loop' },
      },
    },
  };

  const notes = describedStreams(described, '/v1', [timed], { scope: 'events:read' });

  expect(notes).toEqual([
    expect.stringMatching(/allows limit up to 7 for .*, and page_limit is \d+/),
    expect.stringMatching(/no field id \(id\) in records of .*; it has thing_id, seen_at/),
    expect.stringMatching(/no field .* \(time\) in records of .*; it has thing_id, seen_at/),
    expect.stringMatching(/requires the scope things:read for .*; auth\.scope does not have it/),
  ]);
  schema.$ref = '#/components/schemas/Loop';
  expect(describedStreams(described, '/v1', [timed], { scope: 'things:read' })).toHaveLength(1);
});

test('a path that look-ups read is no endpoint that is left out', () => {
  const lookup = '/api/firewall/v1/ip-protocols';
  const described = { paths: { [`/v1${lookup}`]: { get: {} }, [`/v1${lookup}-old`]: { get: {} } } };

  const notes = describedStreams(described, '/v1', [], { lookups: [lookup] });

  expect(notes).toEqual([expect.stringMatching(/no source here reads: \S+-old$/)]);
});

async function checked(fault: FaultScript) {
  const { config } = await aSetup({ sandbox: { faults: fault } });
  writeFileSync(
    config,
    readFileSync(config, 'utf8').replace('every:', 'params: { colour: red }, every:'),
  );
  return await runHere(['check', '-c', config, '--connect']);
}

test('check --connect compares the description', async () => {
  const { stdout, exitCode } = await checked({});
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    /note +upstream edge: openapi\.json has no parameter colour of \/audit\/events/,
  );
  expect(stdout).toMatch(
    /note +upstream edge: openapi\.json has endpoints that no source here reads: .*\/sites/,
  );
});

test.each(['404', 'html', 'huge', 'cut_json', 'empty_object', 'reset'])(
  'check --connect goes well where the description is %s',
  async (kind) => {
    const fault = kind === '404' ? 404 : kind;
    const rules = [{ path: '/v1/openapi.json', fault }] as NonNullable<FaultScript['rules']>;
    const { stdout, exitCode } = await checked({ rules });
    expect(exitCode, stdout).toBe(0);
    expect(stdout.match(/note +upstream edge/g)?.length ?? 0).toBe(kind === '404' ? 0 : 1);
  },
);
