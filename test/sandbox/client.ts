// A deliberately plain client for the sandbox's own tests: it requests, walks and returns its results, without any of
// the care of a real client.
import type { Sandbox, SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';

export const AUDIT = '/v1/audit/events';
export const LOGS = '/api/logs/v1/companies/c-1/events';
export const WEB = '/api/logs/v1/companies/c-1/web';
export const OBJECTS = '/api/firewall/v1/companies/c-1/objects';
export const POLICIES = '/api/firewall/v1/companies/c-1/policies';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface PageReply {
  readonly data: readonly Record<string, unknown>[];
  readonly next_cursor?: string | null;
  readonly total?: number;
}

/** A sandbox that stands still unless a test moves it, and is closed with the test. */
export async function stillSandbox(
  options: SandboxOptions = {},
): Promise<Sandbox & AsyncDisposable> {
  const sandbox = await startSandbox({ rate: 0, firewallEveryS: 0, events: 40, ...options });
  // Kept as an object with getters, so that credentials stay those of the moment.
  return Object.defineProperty(sandbox, Symbol.asyncDispose, {
    value: () => sandbox.close(),
  }) as Sandbox & AsyncDisposable;
}

export async function tokenFor(sandbox: Sandbox, path: string): Promise<string> {
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const unified = path.startsWith('/v1/');
  const scope = unified ? unifiedScope : servicesScope;
  const form = new URLSearchParams({ grant_type: 'client_credentials', scope });
  if (unified) {
    form.set('client_id', clientId);
    form.set('client_secret', clientSecret);
  }
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
  const response = await fetch(
    `${sandbox.url}${unified ? '/v1/oauth/token' : '/api/auth/v1/oauth/v2/token'}`,
    { method: 'POST', body: form, headers: unified ? {} : { authorization: `Basic ${basic}` } },
  );
  const body = (await response.json()) as { readonly access_token: string };
  return body.access_token;
}

export async function ask(sandbox: Sandbox, path: string, token?: string): Promise<Reply> {
  const bearer = token ?? (await tokenFor(sandbox, path));
  const response = await fetch(`${sandbox.url}${path}`, {
    headers: { authorization: `Bearer ${bearer}` },
    redirect: 'manual',
    signal: AbortSignal.timeout(20_000),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export async function page(sandbox: Sandbox, path: string, token?: string): Promise<PageReply> {
  const reply = await ask(sandbox, path, token);
  if (reply.status !== 200) throw new Error(`${path} answered ${reply.status}: ${reply.text}`);
  return JSON.parse(reply.text) as PageReply;
}

/** Follows next_cursor until it is null, missing, or the same again. */
export async function walk(
  sandbox: Sandbox,
  path: string,
  limit: number,
  onPage: (n: number) => void = () => {},
): Promise<{ ids: unknown[]; pages: number; lastCursor: string | null }> {
  const token = await tokenFor(sandbox, path);
  const ids: unknown[] = [];
  let cursor: string | null = null;
  for (let pages = 1; ; pages += 1) {
    const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { data, next_cursor: next } = await page(
      sandbox,
      `${path}?limit=${limit}${query}`,
      token,
    );
    ids.push(...data.map((record) => record.id));
    if (next === null || next === undefined || next === cursor)
      return { ids, pages, lastCursor: cursor };
    cursor = next;
    onPage(pages);
  }
}

/** Reads offset pages until one is empty. */
export async function scan(
  sandbox: Sandbox,
  path: string,
  limit: number,
  query = '',
): Promise<unknown[]> {
  const token = await tokenFor(sandbox, path);
  const ids: unknown[] = [];
  for (;;) {
    const { data } = await page(
      sandbox,
      `${path}?limit=${limit}&offset=${ids.length}${query}`,
      token,
    );
    if (data.length === 0) return ids;
    ids.push(...data.map((record) => record.id));
  }
}
