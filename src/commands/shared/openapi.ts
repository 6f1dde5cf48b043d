// Compares an upstream's own description (`openapi.json`) with the requests of the config, and lists missing,
// deprecated and unread parts. It is only a hint, since the description may be older than the server, and a run does
// not need it. Invariant: a description is hostile until it has the right shape, so it is bounded, read by its own
// members only, and reported in few notes.

import {
  type CollectionStream,
  isObject,
  type Json,
  type JsonObject,
  type ListEndpoint,
  type ListStream,
  type Stream,
} from '../../contracts/index.ts';
import type { UpstreamClient } from '../../run/index.ts';
import { cleanText } from '../../tools/index.ts';

/** Descriptions of large APIs are a few MiB. */
const bytesMax = 16 * 1024 * 1024;
const notesMax = 20;
const namedMax = 5;
const nameLengthMax = 120;

/** Notes on an upstream's description, and the streams and `lookups` (paths) that are read there. Never throws. */
export async function openApiNotes(
  upstream: UpstreamClient,
  streams: readonly Stream[],
  signal: AbortSignal,
  lookups: readonly string[] = [],
): Promise<readonly string[]> {
  const found = await readDescription(upstream, signal);
  if (!('described' in found)) return found.notes;
  const { requestedScope: scope } = upstream;
  try {
    const of = { scope, lookups };
    const notes = describedStreams(found.described, baseOf(upstream), streams, of);
    const more = notes.length - notesMax;
    return more > 0 ? [...notes.slice(0, notesMax), `and ${more} more`] : notes;
  } catch {
    return [notComparable];
  }
}

const path = '/openapi.json';
const notComparable = `${path} is no description that can be compared`;

function baseOf({ baseUrl }: UpstreamClient): string {
  return new URL(baseUrl).pathname;
}

/** An upstream's description, or notes with the reason that there is none. Never throws. */
async function readDescription(
  upstream: UpstreamClient,
  signal: AbortSignal,
): Promise<{ readonly described: Json } | { readonly notes: readonly string[] }> {
  try {
    const answer = await upstream.get({ path, template: path, query: [] }, signal);
    if (answer.outcome !== 'ok') {
      const { status, cause } = answer;
      const isReportedOrAbsent = status === 404 || cause.code === 'token_refused';
      return { notes: isReportedOrAbsent ? [] : [`${path} cannot be compared: ${cause.message}`] };
    }
    if (answer.body.byteLength > bytesMax)
      return { notes: [`${path} is too large to be compared`] };
    return { described: JSON.parse(Buffer.from(answer.body).toString('utf8')) };
  } catch {
    return { notes: [notComparable] };
  }
}

/** Paths that can be read, as an upstream's description has them; empty: it shows none. */
export async function describedPaths(
  upstream: UpstreamClient,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await readDescription(upstream, signal);
  if (!('described' in found)) return [];
  return Array.from(operationsOf(found.described, baseOf(upstream)).values(), (one) => one.below);
}

interface Operation {
  /** As the description has it. */
  readonly path: string;
  /** The same below the base address. */
  readonly below: string;
  readonly deprecated: boolean;
  /** Query parameters by name. */
  readonly parameters: ReadonlyMap<string, JsonObject>;
  /** Names of its records' fields by the path of their list; null: the description shows none. */
  fieldsAt(items: string): readonly string[] | null;
  /** Scopes of each way to be let in; empty: none is named. */
  readonly scopes: readonly (readonly string[])[];
}

/** Pure: the streams that a description has below a base path. `lookups`: paths that are read beside them. */
export function describedStreams(
  described: Json,
  base: string,
  streams: readonly Stream[],
  {
    scope = null,
    lookups = [],
  }: { readonly scope?: string | null; readonly lookups?: readonly string[] } = {},
): readonly string[] {
  const operations = operationsOf(described, base);
  if (operations.size === 0) return ['openapi.json names no path'];
  const endpoints = new Map(
    streams.flatMap(endpointsOf).map((endpoint) => [endpoint.template, endpoint]),
  );
  const read = new Set([...endpoints.keys(), ...lookups].map(shapeOf));
  const notes = [...endpoints.values()].flatMap((one) => {
    const operation = operations.get(shapeOf(one.template));
    const own = endpointNotes(one, operation);
    if (operation === undefined) return own;
    return [...own, ...fieldNotes(one, operation), ...scopeNotes(one, operation, scope)];
  });
  const unread = [...operations].flatMap(([shape, { path, deprecated }]) =>
    read.has(shape) || deprecated || shape === '/openapi.json' ? [] : [clean(path)],
  );
  if (unread.length === 0) return notes;
  const rest = unread.length - namedMax;
  const names = `${unread.slice(0, namedMax).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
  return [...notes, `openapi.json has endpoints that no source here reads: ${names}`];
}

/** The part of a request that a description can cover. */
interface Asked {
  readonly template: string;
  readonly parameters: readonly string[];
  /** The requested page length, and its parameter; null: none is requested. */
  readonly limit: { readonly name: string; readonly value: number } | null;
  /** Where the list of records is in an answer. */
  readonly items: string;
  /** Paths in a record; null and empty: it has none, or several. */
  readonly id: string | null;
  readonly time: readonly string[];
  /** The services' logs are not in the description, as its document states. */
  readonly mayBeMissing: boolean;
}

function endpointsOf(stream: Stream): readonly Asked[] {
  if (stream.kind === 'push') return [];
  const list = stream.kind === 'parents' ? stream.listOf('id') : listIn(stream);
  if (list === null) return [];
  const mayBeMissing = stream.kind === 'list' && stream.records === 'log';
  const byId = stream.kind === 'collection' ? stream.detail?.request('id') : null;
  const { template } = list.request;
  const { pageLimit, pagination } = list;
  const whole: Asked = {
    ...{ template, parameters: parametersOf(list), mayBeMissing, items: pagination.items },
    ...(stream.kind === 'list' ? { id: stream.id, time: stream.time } : { id: null, time: [] }),
    limit: pageLimit === null ? null : { name: pagination.limit_param, value: pageLimit },
  };
  const none = { parameters: [], limit: null, items: '', id: null, time: [] };
  return byId ? [whole, { ...none, template: byId.template, mayBeMissing }] : [whole];
}

function listIn(stream: ListStream | CollectionStream): ListEndpoint {
  return stream.kind === 'list' ? stream : stream.list;
}

function parametersOf({ request, sorting, pagination, pageLimit }: ListEndpoint): string[] {
  const { style, cursor_param, offset_param, limit_param } = pagination;
  const place = style === 'cursor' ? [cursor_param] : style === 'offset' ? [offset_param] : [];
  const fixed = [...request.query, ...sorting].map(([name]) => name);
  return [...fixed, ...place, ...(pageLimit === null ? [] : [limit_param])];
}

function endpointNotes(asked: Asked, operation: Operation | undefined): readonly string[] {
  const { template, parameters, mayBeMissing } = asked;
  if (operation === undefined) {
    return mayBeMissing ? [] : [`openapi.json does not have ${template}`];
  }
  const notes = operation.deprecated ? [`openapi.json calls ${template} deprecated`] : [];
  const documented = operation.parameters;
  // A description without any parameters does not describe them.
  if (documented.size === 0) return notes;
  for (const name of parameters) {
    const parameter = documented.get(name);
    if (parameter === undefined) notes.push(`openapi.json has no parameter ${name} of ${template}`);
    else if (parameter.deprecated === true) {
      notes.push(`openapi.json calls the parameter ${name} of ${template} deprecated`);
    }
  }
  const { limit } = asked;
  const schema = limit === null ? undefined : documented.get(limit.name)?.schema;
  const maximum = isObject(schema) ? schema.maximum : undefined;
  if (limit !== null && typeof maximum === 'number' && maximum < limit.value) {
    const said = `openapi.json allows ${limit.name} up to ${maximum} for ${template}`;
    notes.push(`${said}, and page_limit is ${limit.value}`);
  }
  for (const [name, { required }] of documented) {
    if (required !== true || parameters.includes(name)) continue;
    notes.push(
      `openapi.json requires the parameter ${clean(name)} of ${template}, which is not sent`,
    );
  }
  return notes;
}

/** Where the description's records have no field of the id's name, or of any time's. */
function fieldNotes({ template, items, id, time }: Asked, operation: Operation): readonly string[] {
  const fields = operation.fieldsAt(items);
  if (fields === null) return [];
  const has = (path: string) =>
    fields.includes(path) || fields.includes(path.split('.', 1)[0] ?? '');
  const known = clean(fields.slice(0, namedMax * 2).join(', '));
  const notes: string[] = [];
  if (id !== null && !has(id)) {
    notes.push(`openapi.json shows no field ${id} (id) in records of ${template}; it has ${known}`);
  }
  if (time.length > 0 && !time.some(has)) {
    const none = time.join(' or ');
    notes.push(
      `openapi.json shows no field ${none} (time) in records of ${template}; it has ${known}`,
    );
  }
  return notes;
}

/** Where every way to be let in needs a scope that is not requested. */
function scopeNotes(
  { template }: Asked,
  { scopes }: Operation,
  scope: string | null,
): readonly string[] {
  if (scope === null || scopes.length === 0) return [];
  const requested = new Set(scope.split(/\s+/));
  const missing = scopes.map((some) => some.filter((one) => !requested.has(one)));
  const [fewest = []] = missing.toSorted((a, b) => a.length - b.length);
  if (fewest.length === 0) return [];
  const needed = clean(fewest.join(', '));
  return [`openapi.json requires the scope ${needed} for ${template}; auth.scope does not have it`];
}

/** The readable lists, by the shape of their path below the base. */
function operationsOf(described: Json, base: string): ReadonlyMap<string, Operation> {
  const operations = new Map<string, Operation>();
  const root = isObject(described) ? described : {};
  const own = base.replace(/\/$/, '');
  for (const [path, item] of Object.entries(isObject(root.paths) ? root.paths : {})) {
    const get = isObject(item) ? item.get : undefined;
    if (!isObject(item) || !isObject(get)) continue;
    const parameters = new Map<string, JsonObject>();
    for (const one of [...elements(item.parameters), ...elements(get.parameters)]) {
      const parameter = resolved(one, root);
      if (parameter?.in === 'query' && typeof parameter.name === 'string') {
        parameters.set(parameter.name, parameter);
      }
    }
    const below = own !== '' && path.startsWith(`${own}/`) ? path.slice(own.length) : path;
    const security = elements(get.security ?? root.security);
    operations.set(shapeOf(below), {
      ...{ path, below, deprecated: get.deprecated === true, parameters },
      scopes: security.map((one) => (isObject(one) ? textsIn(Object.values(one)) : [])),
      fieldsAt: (items) => fieldsOf(get, items, root),
    });
  }
  return operations;
}

function textsIn(values: readonly (Json | undefined)[]): readonly string[] {
  return values.flatMap(elements).filter((one) => typeof one === 'string');
}

/** References are followed so often at most: they may lead in a loop. */
const depthMax = 8;

/** Names of the fields of an operation's records; null where they are not described. */
function fieldsOf(operation: JsonObject, items: string, root: JsonObject) {
  const answer = ['responses', '200', 'content', 'application/json', 'schema'];
  const path = items === '' ? [] : items.split('.').flatMap((key) => ['properties', key]);
  let at: Json | undefined = operation;
  for (const key of [...answer, ...path, 'items', 'properties']) {
    const whole = followed(at, root);
    at = isObject(whole) && Object.hasOwn(whole, key) ? whole[key] : undefined;
  }
  const names = isObject(at) ? Object.keys(at) : [];
  return names.length === 0 ? null : names;
}

function followed(value: Json | undefined, root: JsonObject): Json | undefined {
  let at = value;
  for (let depth = 0; isObject(at) && typeof at.$ref === 'string'; depth++) {
    const [, section = '', key = ''] = /^#\/components\/(\w+)\/([^/]+)$/.exec(at.$ref) ?? [];
    const kind = isObject(root.components) ? root.components[section] : undefined;
    if (depth === depthMax || !isObject(kind) || !Object.hasOwn(kind, key)) return undefined;
    at = kind[key];
  }
  return at;
}

function elements(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** A parameter, or the one that it refers to in the same description; references are followed once. */
function resolved(parameter: Json, { components }: JsonObject): JsonObject | null {
  if (!isObject(parameter)) return null;
  if (typeof parameter.$ref !== 'string') return parameter;
  const name = /^#\/components\/parameters\/([^/]+)$/.exec(parameter.$ref)?.[1];
  const known = isObject(components) ? components.parameters : undefined;
  if (name === undefined || !isObject(known) || !Object.hasOwn(known, name)) return null;
  const found = known[name];
  return isObject(found) ? found : null;
}

/** A path with the names of its placeholders removed. */
function shapeOf(path: string): string {
  return path.replace(/\{[^}/]*\}/g, '{}');
}

function clean(text: string): string {
  return cleanText(text, nameLengthMax);
}
