// Kibana and OpenSearch Dashboards as far as the import of saved objects needs them, modelled on the published API: a POST of
// multipart/form-data with one file of NDJSON, refused without the header against cross-site requests; objects by type and id;
// a conflict without `overwrite=true`; missing references are errors.

import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';

/** A stored object. */
export interface StoredObject {
  readonly type: string;
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly references?: readonly { readonly type: string; readonly id: string }[];
}

/** A running one. */
export interface DashboardsServer {
  readonly url: string;
  readonly objects: ReadonlyMap<string, StoredObject>;
  readonly authorizations: readonly (string | undefined)[];
}

/** Starts one; `product` selects the header that a request needs. Ends with the test. */
export async function startDashboards(
  product: 'kibana' | 'opensearch',
  authorization?: string,
): Promise<DashboardsServer> {
  const objects = new Map<string, StoredObject>();
  const authorizations: (string | undefined)[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { headers, method, url = '' } = request;
    const reply = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const refuse = (statusCode: number, message: string) =>
      reply(statusCode, { statusCode, error: 'error', message });
    authorizations.push(headers.authorization);
    if (authorization !== undefined && headers.authorization !== authorization)
      return refuse(401, 'Unauthorized');
    if (headers[product === 'kibana' ? 'kbn-xsrf' : 'osd-xsrf'] === undefined)
      return refuse(400, 'Request must contain a kbn-xsrf header.');
    const address = new URL(url, 'http://x');
    if (method !== 'POST' || address.pathname !== '/api/saved_objects/_import')
      return refuse(404, 'Not Found');
    const file = fileOf(String(headers['content-type']), Buffer.concat(chunks).toString());
    if (file === null) return refuse(415, 'Unsupported Media Type');
    reply(200, imported(objects, file, address.searchParams.get('overwrite') === 'true'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { url: `http://127.0.0.1:${port}`, objects, authorizations };
}

/** The text of the part `file`, which needs a file name that ends with .ndjson. */
function fileOf(type: string, body: string): string | null {
  const boundary = /^multipart\/form-data; boundary=(\S+)$/.exec(type)?.[1];
  if (boundary === undefined || !body.endsWith(`\r\n--${boundary}--\r\n`)) return null;
  const [, part = ''] = body.split(`--${boundary}\r\n`);
  const [head = '', ...rest] = part.split('\r\n\r\n');
  if (!/name="file"; filename="[^"]+\.ndjson"/.test(head)) return null;
  return rest.join('\r\n\r\n').split(`\r\n--${boundary}--`)[0] ?? null;
}

function imported(objects: Map<string, StoredObject>, file: string, overwrite: boolean): object {
  const sent: StoredObject[] = file
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  const key = ({ type, id }: { readonly type: string; readonly id: string }) => `${type} ${id}`;
  const known = new Set([...objects.keys(), ...sent.map(key)]);
  const errors = sent.flatMap((one) => {
    const { type, id, references = [] } = one;
    if (references.some((reference) => !known.has(key(reference))))
      return [{ type, id, error: { type: 'missing_references' } }];
    if (!overwrite && objects.has(key(one))) return [{ type, id, error: { type: 'conflict' } }];
    return [];
  });
  const failed = new Set(errors.map(key));
  for (const one of sent) if (!failed.has(key(one))) objects.set(key(one), one);
  return {
    success: errors.length === 0,
    successCount: sent.length - errors.length,
    ...(errors.length > 0 && { errors }),
  };
}
