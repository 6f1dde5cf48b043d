// The detection rules of `sigma/` as searches of OpenSearch or Elasticsearch, and their answers as alerts. A converted rule
// is one query, and each event that it finds is an alert. A written rule is an aggregation with a condition, and each
// group that fulfils it is an alert. Invariants: the searched time is that of `event.ingested`, so a late event is found;
// an answer that is not complete is an error, never "no alert".

import { readdirSync, readFileSync } from 'node:fs';

/** One alert. `key` is the same whenever the same events are found again. */
export interface Alert {
  readonly rule: string;
  readonly title: string;
  readonly level: string;
  readonly key: string;
  /** The sentence of the event, or the group of events. */
  readonly text: string;
  /** `event.id` of the event; none for a group. */
  readonly uid: string | null;
}

/** Sends a request to the cluster and resolves to the JSON of its response; rejects on any error. */
export type Ask = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** Where rules search: indices, and the time of reading in Elasticsearch's date mathematics; null: any time. */
export interface Scope {
  readonly index: string;
  readonly since: string | null;
}

/** A rule that can be run. */
export interface QueryRule {
  readonly name: string;
  readonly title: string;
  readonly level: string;
  run(ask: Ask, scope: Scope): Promise<readonly Alert[]>;
}

interface ConvertedRule {
  readonly id: string;
  readonly title: string;
  readonly level: string;
  readonly query: string;
}

/** A condition on a group: a number at a path below it, compared with a number or with another path. */
interface Condition {
  readonly path: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly after?: string;
}

interface WrittenRule {
  readonly title: string;
  readonly level: string;
  readonly opensearch: {
    readonly search: { readonly query: { readonly bool: { readonly filter: readonly object[] } } };
    readonly groups: readonly (readonly string[])[];
    readonly condition: readonly Condition[];
  };
}

type Json = { readonly [name: string]: unknown };

/** Highest number of alerts of one rule in one search. */
const alertsMax = 1_000;
const here = new URL('sigma/', import.meta.url);

/** All rules, converted and written, by name. */
export function queryRules(): readonly QueryRule[] {
  const { rules } = readJson('converted/opensearch.json') as {
    readonly rules: Readonly<Record<string, ConvertedRule>>;
  };
  const written = readdirSync(new URL('written/', here))
    .filter((file) => file.endsWith('.json'))
    .map((file) => [file.slice(0, -5), readJson(`written/${file}`) as WrittenRule] as const);
  return [
    ...Object.entries(rules).map(([name, rule]) => convertedRule(name, rule)),
    ...written.map(([name, rule]) => writtenRule(name, rule)),
  ].toSorted((a, b) => a.name.localeCompare(b.name));
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, here), 'utf8'));
}

function timeFilter({ since }: Scope): readonly object[] {
  return since === null ? [] : [{ range: { 'event.ingested': { gte: since } } }];
}

function convertedRule(name: string, { title, level, query }: ConvertedRule): QueryRule {
  return {
    ...{ name, title, level },
    async run(ask, scope) {
      const filter = [{ query_string: { query } }, ...timeFilter(scope)];
      const answer = await searched(ask, scope, {
        size: alertsMax,
        query: { bool: { filter } },
        sort: [{ '@timestamp': 'asc' }],
        _source: ['message', 'event.id'],
      });
      const { hits = [] } = part(answer.hits) as { readonly hits?: readonly Json[] };
      return hits.map(({ _source }) => {
        const source = part(_source);
        const uid = String(part(source.event).id);
        return {
          rule: name,
          title,
          level,
          key: `${name} ${uid}`,
          text: String(source.message),
          uid,
        };
      });
    },
  };
}

function writtenRule(name: string, { title, level, opensearch }: WrittenRule): QueryRule {
  const { search, groups, condition } = opensearch;
  return {
    ...{ name, title, level },
    async run(ask, scope) {
      const filter = [...search.query.bool.filter, ...timeFilter(scope)];
      const answer = await searched(ask, scope, { ...search, query: { bool: { filter } } });
      const found = groups.flatMap((path) => groupsOf(part(answer.aggregations), path, []));
      const alerts = new Map<string, Alert>();
      for (const { keys, group } of found) {
        if (!condition.every((one) => fulfils(group, one))) continue;
        // A window is no part of the identity: windows overlap.
        const who = keys.slice(0, path(keys)).join(' ');
        const key = `${name} ${who}`;
        alerts.set(key, { rule: name, title, level, key, text: `${title}: ${who}`, uid: null });
      }
      return [...alerts.values()];
    },
  };
}

/** The number of keys that name a group: times, which are windows, do not. */
function path(keys: readonly (string | number)[]): number {
  const time = keys.findIndex((key) => typeof key === 'number');
  return time < 0 ? keys.length : time;
}

interface Group {
  readonly keys: readonly (string | number)[];
  readonly group: Json;
}

function groupsOf(
  at: Json,
  [name, ...below]: readonly string[],
  keys: readonly (string | number)[],
): readonly Group[] {
  if (name === undefined) return [{ keys, group: at }];
  const buckets = part(at[name]).buckets;
  if (!Array.isArray(buckets)) throw new Error(`the response has no groups ${name}`);
  return buckets.flatMap((bucket: Json) =>
    groupsOf(bucket, below, [...keys, bucket.key as string]),
  );
}

function fulfils(group: Json, { path, atLeast, atMost, after }: Condition): boolean {
  const value = numberAt(group, path);
  if (value === null) return false;
  if (atLeast !== undefined && value < atLeast) return false;
  if (atMost !== undefined && value > atMost) return false;
  return after === undefined || value > (numberAt(group, after) ?? Number.POSITIVE_INFINITY);
}

function numberAt(group: Json, path: string): number | null {
  let at: unknown = group;
  for (const name of path.split('.')) at = part(at)[name];
  return typeof at === 'number' ? at : null;
}

async function searched(ask: Ask, { index }: Scope, body: object): Promise<Json> {
  const answer = part(
    await ask('POST', `/${index}/_search?ignore_unavailable=true&allow_no_indices=true`, body),
  );
  const { failed, total } = part(answer._shards);
  if (total === 0)
    throw new Error(`no index matches ${index}: is sluice delivering to this cluster?`);
  if (answer.timed_out === true || (typeof failed === 'number' && failed > 0))
    throw new Error('the response is not complete: a part of the indices failed or was too slow');
  return answer;
}

function part(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

/** Requests to a cluster at this address; `authorization`: the header, if it needs one. */
export function clusterAt(url: string, authorization: string | undefined): Ask {
  return async (method, path, body) => {
    const address = url.replace(/\/+$/, '');
    const response = await fetch(address + path, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(authorization !== undefined && { authorization }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    }).catch((error: unknown) => {
      throw new Error(`no connection to ${address}: check --url and that the cluster runs`, {
        cause: error,
      });
    });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
}
