// One request from arrival to response: fault rules first (a broken proxy checks no tokens), then token, scope, rate
// limit and endpoint, then the fault's change of a good response.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { failed, type SandboxRequest, type SandboxResponse, shaped } from './answers.ts';
import type { ListBehaviour } from './behaviour.ts';
import { alterAnswer, answerInstead, retryAfter } from './bend.ts';
import { deliver } from './deliver.ts';
import { EARLIER_BASE } from './earlier-api.ts';
import type { Faults, SandboxFault } from './faults.ts';
import type { Limits } from './limits.ts';
import type { Router, World } from './routes.ts';
import type { SandboxTokens } from './tokens.ts';
import type { Traffic } from './traffic.ts';

/** Dependencies of a response. `faults` and `limits` are read each time: a new script replaces them. */
export interface Responder {
  readonly world: World;
  readonly router: Router;
  readonly tokens: SandboxTokens;
  readonly traffic: Traffic;
  readonly faults: () => Faults;
  readonly limits: () => Limits;
  readonly control: (ask: SandboxRequest) => SandboxResponse;
  /** Closes the answering port, for the fault `refused`. */
  readonly refuse?: () => void;
}

/** Prefix of the control endpoints, which have no faults, tokens or limits. */
const CONTROL_PREFIX = '/_sandbox';

const TOKEN_PATHS: Readonly<Record<SandboxRequest['api'], string | null>> = {
  unified: '/v1/oauth/token',
  services: '/api/auth/v1/oauth/v2/token',
  earlier: null,
};

const BODY_BYTES_MAX = 1024 * 1024;

/** Answers one request. Never rejects. */
export async function respond(
  responder: Responder,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.sendDate = false;
  try {
    const ask = await askOf(request);
    if (ask.path.startsWith(CONTROL_PREFIX)) {
      await deliver(response, responder.control(ask), null);
      return;
    }
    const following =
      ask.query.has('cursor') ||
      Number(ask.query.get('offset') ?? 0) > 0 ||
      Number(ask.query.get('page') ?? 1) > 1 ||
      /"cursor": *"/.test(ask.body);
    const fault = responder.faults().next({ path: ask.path, following });
    const nowMs = responder.world.now();
    const answer = shaped(answerUnder(responder, ask, fault));
    responder.traffic.count(ask.path, { status: answer.status, fault: fault?.kind ?? null });
    const headers = {
      date: new Date(nowMs).toUTCString(),
      ...answer.headers,
      ...announced(responder.world.behaviour(ask.path)),
    };
    if (fault?.kind === 'refused') responder.refuse?.();
    await deliver(response, { ...answer, headers }, fault);
  } catch (error) {
    // A bug of the sandbox, or a client that disconnected; a bug must not look like a fault.
    if (response.headersSent) response.destroy();
    else
      response.writeHead(500, { 'content-type': 'text/plain' }).end(`sandbox: ${String(error)}\n`);
  }
}

/** The headers that announce the end of an endpoint. */
function announced({ sunset, deprecation }: ListBehaviour): Readonly<Record<string, string>> {
  return {
    ...(sunset !== undefined && { sunset: new Date(sunset).toUTCString() }),
    ...(deprecation !== undefined && {
      deprecation: `@${Math.floor(Date.parse(deprecation) / 1000)}`,
    }),
  };
}

function answerUnder(
  responder: Responder,
  ask: SandboxRequest,
  fault: SandboxFault | null,
): SandboxResponse {
  if (fault === null) return endpointAnswer(responder, ask);
  if (fault.kind === 'revoke_token') {
    const bearer = responder.tokens.bearer(ask);
    if (bearer !== null) responder.tokens.revoke(bearer.token);
  }
  const nowMs = responder.world.now();
  const instead = answerInstead(fault, ask, nowMs);
  if (instead !== null) return instead;
  if (fault.kind === 'cursor_ignored') {
    const query = new URLSearchParams(ask.query);
    query.delete('cursor');
    return endpointAnswer(responder, { ...ask, query });
  }
  if (fault.kind === 'shifted') {
    const query = new URLSearchParams(ask.query);
    query.set('offset', String(Number(query.get('offset') ?? 0) + (fault.by ?? 1)));
    return endpointAnswer(responder, { ...ask, query });
  }
  return alterAnswer(fault, endpointAnswer(responder, ask), nowMs);
}

function endpointAnswer(
  { world, router, tokens, limits }: Responder,
  ask: SandboxRequest,
): SandboxResponse {
  if (ask.path === TOKEN_PATHS[ask.api]) return tokens.issue(ask);
  const bearer = tokens.bearer(ask);
  if (bearer === null) {
    return failed(ask.api, { status: 401, message: 'the token is missing, unknown or expired' });
  }
  const nowMs = world.now();
  const { headers, refused } = limits().take(ask.api, bearer.token, ask.path, nowMs);
  if (refused !== null) {
    const wait = retryAfter(refused.retryAfterS, refused.retryAs, nowMs);
    return {
      ...failed(ask.api, { status: 429, message: 'too many requests' }),
      headers: { ...headers, ...wait },
    };
  }
  const found = router(ask.path);
  if (found.length === 0) return failed(ask.api, { status: 404, message: 'no such endpoint' });
  const taken = found.find(({ route }) => (route.method ?? 'GET') === ask.method);
  if (taken === undefined) {
    const answer = failed(ask.api, { status: 405, message: 'the sandbox is read-only' });
    const allow = found.map(({ route }) => route.method ?? 'GET').join(', ');
    return { ...answer, headers: { allow } };
  }
  const { route, params } = taken;
  if (route.scope !== undefined && !bearer.scopes.has(route.scope)) {
    return failed(ask.api, { status: 403, message: `the token lacks the scope ${route.scope}` });
  }
  const answer = route.answer(ask, params, world);
  return { ...answer, headers: { ...headers, ...answer.headers } };
}

function apiOf(path: string): SandboxRequest['api'] {
  if (path.startsWith(`${EARLIER_BASE}/`)) return 'earlier';
  return path.startsWith('/v1/') ? 'unified' : 'services';
}

async function askOf(request: IncomingMessage): Promise<SandboxRequest> {
  const [, path = '/', query = ''] = /^([^?]*)\??(.*)$/s.exec(request.url ?? '/') ?? [];
  return {
    api: apiOf(path),
    method: request.method ?? 'GET',
    scheme: 'encrypted' in request.socket ? 'https' : 'http',
    path,
    query: new URLSearchParams(query),
    headers: request.headers,
    body: request.method === 'GET' ? '' : await bodyOf(request),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX)
      throw new RangeError(`a request body is over ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
