// What sources of collections have in common, against the sandbox: with companies and without, one object in place of a
// list, and paging as shown or as declared.

import { describe, expect, test } from 'vitest';
import {
  type CollectionFacts,
  collectionFields,
  defineCollections,
  endpointFields,
} from '../../../connectors/sources/collection.ts';
import type { CollectionStream } from '../../../src/contracts/source.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import { collectionReader, standingSandbox } from '../../list/reading.ts';
import { okOf } from '../../support/made-up-list.ts';
import { settingsOf, streamsOf, upstreamAt } from '../../support/plain-upstream.ts';

const never = new AbortController().signal;

/** A source that declares one collection. */
function declared(facts: CollectionFacts) {
  return defineCollections({
    type: 'made_up',
    summary: '',
    apis: ['unified', 'services'],
    fields: () => ({ ...collectionFields(), ...endpointFields() }),
    collections: (endpoint) => [{ endpoint, ...facts }],
  });
}

const sites: CollectionFacts = { path: '/sites', entity: { kind: 'site', ids: ['id'] } };
const company: CollectionFacts = {
  path: '/api/fleet/v1/companies/{company_id}',
  entity: { kind: 'company', ids: ['company_id'] },
  single: true,
};

function collections(
  facts: CollectionFacts,
  sandbox: Sandbox,
  given: Readonly<Record<string, unknown>> = {},
) {
  const upstream = upstreamAt(facts === sites ? 'unified' : 'services', sandbox);
  return streamsOf(declared(facts), upstream, given) as readonly CollectionStream[];
}

async function idsOf(stream: CollectionStream | undefined) {
  if (stream === undefined) throw new Error('there is no such stream');
  const read = await collectionReader(stream).read(never);
  if (read.outcome !== 'ok') throw read.cause;
  return { ids: read.entities.map(({ id }) => id).toSorted(), flaw: read.flaw };
}

describe('collections', () => {
  test('a path without companies is one stream, named as its source, read as it shows itself', async () => {
    const { sandbox } = await standingSandbox();

    const streams = collections(sites, sandbox);

    expect(streams).toMatchObject([{ name: 'src', resource: 'site' }]);
    expect(streams[0]).not.toHaveProperty('company');
    const statusView = [...sandbox.ledger().collection('/v1/sites').entities().keys()];
    expect(await idsOf(streams[0])).toEqual({ ids: statusView.toSorted(), flaw: null });
  });

  test('paging as declared sends its parameters, behind the fixed ones', async () => {
    const { sandbox } = await standingSandbox();
    const given = { page_limit: 3, pagination: { style: 'cursor' }, params: { status: 'active' } };

    const stream = collections(sites, sandbox, given)[0] as CollectionStream;
    const asked: string[] = [];
    const get: typeof stream.list.upstream.get = (request, signal) => {
      asked.push(request.query.map(([name]) => name).join(' '));
      return stream.list.upstream.get(request, signal);
    };
    const watched = { ...stream, list: { ...stream.list, upstream: { get } } };

    expect((await idsOf(watched)).flaw).toBeNull();
    expect([...new Set(asked)]).toEqual(['status limit', 'status limit cursor']);
  });

  test('one object in place of a list is one entity per company', async () => {
    const { sandbox } = await standingSandbox();

    const streams = collections(company, sandbox);

    expect(streams.map(({ name }) => name)).toEqual(['src/c-1', 'src/c-2']);
    expect(await idsOf(streams[1])).toEqual({ ids: ['c-2'], flaw: null });
  });

  test('an object without an id is known by its company, and none is no entity', async () => {
    const { sandbox } = await standingSandbox();
    const [stream] = collections(company, sandbox);
    const saying = (body: string) =>
      ({
        ...stream,
        list: {
          ...stream?.list,
          upstream: { get: async () => okOf(body) },
        },
      }) as CollectionStream;

    expect((await idsOf(saying('{"data":{"plan":"gold"}}'))).ids).toEqual(['c-1']);
    await expect(idsOf(saying('{}'))).rejects.toThrow('the answer is no company');
    await expect(idsOf(saying('[]'))).rejects.toThrow('the answer is no company');
  });

  test('a path with companies needs them, and fixed parameters must not be those of paging', () => {
    const upstream = { api: 'services', companies: [] } as const;
    const clashing = settingsOf(declared(sites), { params: { cursor: 'x' } });

    expect(declared(company).flaw?.(settingsOf(declared(company)), upstream)).toContain(
      'companies',
    );
    expect(declared(sites).flaw?.(clashing, upstream)).toContain('params holds cursor');
    expect(declared(sites).flaw?.(settingsOf(declared(sites)), upstream)).toBeNull();
  });
});
