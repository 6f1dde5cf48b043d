// A server that repeats everything: headers, address and body of a request are in its response, as an error's message,
// as a page of HTML, as a redirect. It plays every server that sluice contacts: token endpoint, upstream, HTTP and OTLP
// receiver. The first segment of a path selects the response.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterThisTest } from '../support/temp.ts';

/** A running server. It ends with the test. */
export interface EchoServer {
  /** `http://127.0.0.1:port`; followed by `/ok`, `/401`, `/html` and the like. */
  readonly url: string;
  /** All that it was sent, to know that the secrets were. */
  readonly heard: () => string;
}

/** The tokens it issues; they are searched for like the secrets it receives. */
export interface Issued {
  readonly token: string;
  readonly cursor: string;
}

/** Starts the server on a free loopback port. */
export async function startEchoServer(issued: Issued): Promise<EchoServer> {
  const received: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const said = `${request.url} ${request.rawHeaders.join(' ')} ${Buffer.concat(chunks).toString()}`;
    received.push(said);
    answer(request, response, { said, issued });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port');
  return { url: `http://127.0.0.1:${address.port}`, heard: () => received.join('\n') };
}

interface Echo {
  readonly said: string;
  readonly issued: Issued;
}

function answer(request: IncomingMessage, response: ServerResponse, echo: Echo): void {
  const { said, issued } = echo;
  const [, how = '', ...rest] = (request.url ?? '').split('?')[0]?.split('/') ?? [];
  const json = (status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-echo': header(said) });
    response.end(JSON.stringify(body));
  };
  if (rest.join('/').endsWith('token') && how !== 'token401') {
    json(200, { access_token: issued.token, token_type: 'Bearer', expires_in: 3600, scope: said });
    return;
  }
  switch (how) {
    case 'ok':
      json(200, pageFor(request.url ?? '', issued.cursor));
      return;
    case 'token401':
      json(401, { error: 'invalid_client', error_description: said });
      return;
    case 'cursor422':
      if (request.url?.includes('cursor=')) {
        json(422, { error: { code: 'bad', message: said, field: 'cursor' }, request_id: said });
      } else json(200, pageFor('', issued.cursor));
      return;
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<html>${said}</html>`);
      return;
    case 'redirect':
      response.writeHead(302, { location: `https://elsewhere.test/?${header(said)}` }).end();
      return;
    case 'partial':
      json(200, { partialSuccess: { rejectedLogRecords: '1', errorMessage: said } });
      return;
    case 'accept':
      json(200, {});
      return;
    default:
      // `/403/…` and other statuses: every member that an error's body may have.
      json(Number(how), {
        ...{ error: { code: said, message: said, field: said }, request_id: said, trace_id: said },
        ...{ title: said, detail: said, message: said, errors: [{ message: said }] },
      });
  }
}

/** Two pages, each with one record. */
function pageFor(url: string, cursor: string): object {
  const last = url.includes('cursor=');
  const id = last ? 'evt-2' : 'evt-1';
  return { data: [{ id, action: 'policy.update' }], next_cursor: last ? null : cursor };
}

function header(text: string): string {
  return encodeURIComponent(text).slice(0, 2_000);
}
