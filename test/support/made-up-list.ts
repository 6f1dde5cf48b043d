// A list that a test scripts instead of running a server: the declarations of its stream, the requested page, and
// responses as an upstream client returns them.

import type { Answer } from '../../src/contracts/answer.ts';
import type { ListStream, Pagination } from '../../src/contracts/source.ts';
import type { Body, Upstream, UpstreamRequest } from '../../src/contracts/upstream.ts';
import type { PageQuery } from '../../src/list/page.ts';

/** The config's own defaults. */
export const pagination: Pagination = {
  style: 'cursor',
  ...{ cursor_param: 'cursor', limit_param: 'limit', offset_param: 'offset' },
  ...{ items: 'data', next: 'next_cursor', total: 'total' },
};

/** A stream whose requests are answered by `get`. */
export function madeUpList(get: Upstream['get'], differing: Partial<ListStream> = {}): ListStream {
  return {
    kind: 'list',
    ...{ name: 'src', source: 'src', records: 'audit', immutable: false, paths: [] },
    upstream: { get },
    request: { path: '/list', template: '/list', query: [] },
    ...{ sorting: [], pagination, fingerprint: 'made up', id: 'id', time: [], pageLimit: 100 },
    ...differing,
  };
}

/** The same stream, answered by `get`, which may call it. */
export function answeredBy(
  stream: ListStream,
  get: (request: UpstreamRequest, signal: AbortSignal) => ReturnType<Upstream['get']>,
): ListStream {
  return { ...stream, upstream: { get } };
}

/** The page that a request is for. */
export function queryIn({ query }: UpstreamRequest): PageQuery {
  const { cursor = null, limit = null, offset } = Object.fromEntries(query);
  return {
    position:
      offset === undefined ? { by: 'cursor', cursor } : { by: 'offset', offset: Number(offset) },
    limit: limit === null ? null : Number(limit),
  };
}

/** The cursor that a request sends; null: none. */
export function cursorIn({ query }: UpstreamRequest): string | null {
  return query.find(([name]) => name === 'cursor')?.[1] ?? null;
}

/** An answer with these records, and what else stands in its envelope. */
export function answerWith(
  records: readonly unknown[],
  envelope: Readonly<Record<string, unknown>> = {},
): Answer<Body> {
  return okOf(JSON.stringify({ data: records, ...envelope }));
}

/** A body as it is sent. */
export function okOf(text: string): Answer<Body> {
  return { outcome: 'ok', url: 'http://upstream/', body: Buffer.from(text), headers: {} };
}
