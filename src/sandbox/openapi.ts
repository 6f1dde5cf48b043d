// The OpenAPI 3.1 description of each API, generated from the served routes, so it names nothing that does not exist.
// Logs are not part of the services' description, as its document says, nor are the sandbox's own paths.
import { ok } from './answers.ts';
import type { SandboxRoute } from './routes.ts';

/** The subject of a description. `base` is the end of the API's base address. */
export interface Described {
  readonly base: string;
  readonly title: string;
  readonly tokenPath: string;
}

/** `openapi.json` of an API. */
export function openApiRoute(
  { base, title, tokenPath }: Described,
  routes: readonly SandboxRoute[],
): SandboxRoute {
  const described = routes.filter(({ about = null }) => about !== null);
  const paths = Map.groupBy(described, ({ path }) => path.slice(base.length));
  const description = {
    openapi: '3.1.0',
    info: { title, version: '1' },
    servers: [{ url: base === '' ? '/' : base }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    security: [{ bearer: [] }],
    paths: {
      [tokenPath]: { post: { summary: 'Client credentials', security: [], responses: RESPONSES } },
      ...Object.fromEntries(
        [...paths].map(([path, found]) => [
          path,
          Object.fromEntries(found.map((route) => [methodOf(route), operationOf(route)])),
        ]),
      ),
    },
  };
  return { path: `${base}/openapi.json`, answer: () => ok(description) };
}

const RESPONSES = { '2XX': { description: 'as the document says' } };
const INTEGERS = ['limit', 'offset'];

function methodOf({ method = 'GET' }: SandboxRoute): string {
  return method.toLowerCase();
}

function operationOf({ path, about, query = [], deprecated = false }: SandboxRoute): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
  const inQuery = query.map((name) => {
    const type = INTEGERS.includes(name) ? 'integer' : 'string';
    return { name, in: 'query', schema: { type } };
  });
  return {
    summary: about,
    ...(deprecated && { deprecated }),
    parameters: [...inPath, ...inQuery],
    responses: RESPONSES,
  };
}
