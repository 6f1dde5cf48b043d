// The paging styles that neither document shows: each walks through the whole list once, and
// misbehaves as the fault script says.
import { describe, expect, it } from 'vitest';
import type { FaultScript, Sandbox } from '../../src/sandbox/sandbox.ts';
import { ask, type Reply, stillSandbox, tokenFor } from './client.ts';

const LISTS = '/api/lists/v1/companies/c-1';
const WEB = '/api/logs/v1/companies/c-1/web';

type Body = Readonly<Record<string, unknown>> & {
  readonly data: readonly { readonly id: string }[];
};

interface Turn {
  readonly ids: readonly unknown[];
  /** The next request's path, or null at the end. */
  readonly next: string | null;
}

const idOf = (record: Readonly<Record<string, unknown>>) => record.id ?? record.entry_id;
const idsOf = ({ data }: Body) => data.map(idOf);
const bodyOf = ({ text }: Reply): Body => JSON.parse(text);

/** How a client of each style continues after a response. */
const STYLES: Readonly<Record<string, (path: string, reply: Reply) => Turn>> = {
  'page?page_size=7': (path, reply) => {
    const body = bodyOf(reply);
    const [number, pages] = [Number(body.page), Number(body.total_pages)];
    const next = number < pages ? `${path.split('&')[0]}&page=${number + 1}` : null;
    return { ids: idsOf(body), next };
  },
  'link?limit=7': (_path, reply) => ({
    ids: JSON.parse(reply.text).map(idOf),
    next: linkedBy(reply),
  }),
  'next-url?limit=7': (_path, reply) => {
    const { next } = Object(bodyOf(reply).paging);
    return { ids: idsOf(bodyOf(reply)), next: next === null ? null : pathOf(next) };
  },
  'ndjson?limit=7': (_path, reply) => ({
    ids: reply.text.split('\n').flatMap((line) => (line === '' ? [] : [idOf(JSON.parse(line))])),
    next: linkedBy(reply),
  }),
  'more?limit=7': (path, reply) => {
    const body = bodyOf(reply);
    expect(body.cursor).toEqual(expect.any(String));
    const next = `${path.split('&')[0]}&cursor=${String(body.cursor)}`;
    return { ids: idsOf(body), next: body.has_more === true ? next : null };
  },
  'more?limit=7&offset=0': (path, reply) => {
    const body = bodyOf(reply);
    const offset = Number(body.offset) + body.data.length;
    return {
      ids: idsOf(body),
      next: body.has_more === true ? `${path.split('&')[0]}&offset=${offset}` : null,
    };
  },
};

function linkedBy({ headers }: Reply): string | null {
  const found = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  return found === undefined ? null : pathOf(found);
}

function pathOf(address: string): string {
  const { pathname, search } = new URL(address);
  return pathname + search;
}

async function walked(sandbox: Sandbox, start: string): Promise<unknown[]> {
  const style = STYLES[start.slice(start.lastIndexOf('/') + 1)];
  if (style === undefined) throw new Error(`no style ${start}`);
  const token = await tokenFor(sandbox, LISTS);
  const ids: unknown[] = [];
  for (let path: string | null = start; path !== null; ) {
    const reply = await ask(sandbox, path, token);
    expect(reply.status).toBe(200);
    const turn = style(path, reply);
    ids.push(...turn.ids);
    path = turn.next;
    if (ids.length > 1_000) return ids;
  }
  return ids;
}

describe.each(Object.keys(STYLES))('%s', (style) => {
  it('walks through log records, each once', async () => {
    await using sandbox = await stillSandbox({ logs: 40 });

    const ids = await walked(sandbox, `${LISTS}/web/${style}`);

    expect(ids).toEqual([...sandbox.ledger().list(WEB).ids()]);
  });

  it('walks through a collection, each entity once', async () => {
    await using sandbox = await stillSandbox();
    const path = '/api/threat-protection/v1/companies/c-1/block-list-entries';

    const ids = await walked(sandbox, `${LISTS}/block-list-entries/${style}`);

    expect(ids).toEqual([...sandbox.ledger().collection(path).entities().keys()]);
  });

  it('ends early, or never, as the script says', async () => {
    const path = `${LISTS}/web/${style.split('?')[0]}`;
    const short: FaultScript = {
      rules: [{ path, fault: { kind: 'short', keep: 3, total: true } }],
    };
    await using sandbox = await stillSandbox({ logs: 40, faults: short });

    const early = await walked(sandbox, `${LISTS}/web/${style}`);
    sandbox.control.setFaults({ lists: [{ path, endless: true }] });
    const endless = await walked(sandbox, `${LISTS}/web/${style}`);

    expect(early).toHaveLength(3);
    expect(endless.length).toBeGreaterThan(1_000);
    expect(new Set(endless).size).toBe(endless.length);
  });
});

describe('addresses', () => {
  it.each(['link', 'next-url', 'ndjson'])(
    'of %s are of this origin, or a foreign one',
    async (style) => {
      const path = `${LISTS}/web/${style}`;
      await using sandbox = await stillSandbox();
      const token = await tokenFor(sandbox, LISTS);
      const address = async () => {
        const { headers, text } = await ask(sandbox, `${path}?limit=5`, token);
        const held = headers.get('link') ?? String(Object(JSON.parse(text).paging).next);
        return new URL(/https?:[^>]+/.exec(held)?.[0] ?? '').origin;
      };

      const own = await address();
      sandbox.control.setFaults({
        rules: [{ path, fault: { kind: 'foreign_next', to: 'https://elsewhere.example' } }],
      });

      expect([own, await address()]).toEqual([sandbox.url, 'https://elsewhere.example']);
    },
  );

  it('of the first page have no cursor', async () => {
    await using sandbox = await stillSandbox();
    const path = `${LISTS}/web/link?limit=5`;

    const second = await ask(sandbox, linkedBy(await ask(sandbox, path)) ?? '');

    expect(/<([^>]+)>; rel="first"/.exec(second.headers.get('link') ?? '')?.[1]).toBe(
      sandbox.url + path,
    );
  });

  it('lead back to the start under the loop fault', async () => {
    const path = `${LISTS}/web/link`;
    await using sandbox = await stillSandbox({ faults: { rules: [{ path, fault: 'loop' }] } });

    const reply = await ask(sandbox, `${path}?limit=5`);
    const next = await ask(sandbox, linkedBy(reply) ?? '');

    expect(next.text).toBe(reply.text);
  });
});

describe('window', () => {
  it.each<[string, (timeMs: number) => string, string]>([
    ['RFC 3339 and cursors', (timeMs) => new Date(timeMs).toISOString(), ''],
    ['milliseconds and offsets', String, '&offset=0&limit=500'],
    ['seconds and pages', (timeMs) => String(Math.ceil(timeMs / 1000)), '&page=1&page_size=500'],
  ])('windows in %s hold each record once', async (_name, written, more) => {
    await using sandbox = await stillSandbox({ logs: 60, now: () => Date.UTC(2026, 5, 1) });
    const token = await tokenFor(sandbox, LISTS);
    const ids: unknown[] = [];
    const hourMs = 600_000;

    for (
      let at = Date.UTC(2026, 5, 1) - 4 * hourMs;
      at < Date.UTC(2026, 5, 1) + hourMs;
      at += hourMs
    ) {
      const span = `from=${written(at)}&to=${written(at + hourMs)}`;
      const reply = await ask(sandbox, `${LISTS}/web/window?${span}${more}`, token);
      ids.push(...idsOf(bodyOf(reply)));
    }

    expect(ids).toEqual([...sandbox.ledger().list(WEB).ids()]);
  });

  it('a window begins with the record of its first moment and ends before that of its last', async () => {
    await using sandbox = await stillSandbox({ logs: 60 });
    const list = sandbox.ledger().list(WEB);
    const [from, to] = [10, 20].map((index) => JSON.parse(list.textAt(index)).timestamp);

    const reply = await ask(sandbox, `${LISTS}/web/window?from=${from}&to=${to}`);

    expect(idsOf(bodyOf(reply))).toEqual([...list.ids()].slice(10, 20));
  });

  it.each(['', '?from=2026-06-01T00:00:00Z', '?from=yesterday&to=today'])(
    '%s is refused',
    async (query) => {
      await using sandbox = await stillSandbox();

      const reply = await ask(sandbox, `${LISTS}/web/window${query}`);

      expect(reply.status).toBe(400);
    },
  );
});

describe('search', () => {
  it('takes its parameters from a JSON body', async () => {
    await using sandbox = await stillSandbox({ logs: 40 });
    const authorization = `Bearer ${await tokenFor(sandbox, LISTS)}`;
    const post = async (body: string) => {
      const response = await fetch(`${sandbox.url}${LISTS}/web/search`, {
        method: 'POST',
        body,
        headers: { authorization, 'content-type': 'application/json' },
      });
      return { status: response.status, body: (await response.json()) as Body };
    };
    const ids: unknown[] = [];

    let cursor: unknown = null;
    do {
      const { body } = await post(
        JSON.stringify({ limit: 15, ...(cursor !== null && { cursor }) }),
      );
      ids.push(...idsOf(body));
      cursor = body.next_cursor;
    } while (cursor !== null);
    const byOffset = await post('{"limit":15,"offset":30}');
    const nonsense = await post('limit=15');
    const got = await ask(sandbox, `${LISTS}/web/search`);

    expect(ids).toEqual([...sandbox.ledger().list(WEB).ids()]);
    expect(idsOf(byOffset.body)).toEqual(ids.slice(30));
    expect([nonsense.status, got.status]).toEqual([400, 405]);
  });
});
