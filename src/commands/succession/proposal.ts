// A successor for each source of an upstream that ends, from the config alone. Known are the paths
// of the services document's mapping (`/tickets`, `/hosts`, `/utp`), that names become snake_case
// and ids text, and that pages become offsets. What the document does not show is left open, with
// the question for the vendor. What must stay true: nothing is guessed that would read the wrong
// list, and what the source is read with is carried over.

import type { Config } from '../../config/config.ts';
import { namePattern, sourceBlock } from '../../config/shape.ts';
import { isObject, type Json, type JsonObject } from '../../contracts/json.ts';
import { foldedPath } from '../../tools/folded-name.ts';
import type { UpstreamSettings } from '../../upstream/settings.ts';
import { type Target, targetOf } from './targets.ts';

/** One source that has to move. */
export interface Proposal {
  /** The source's name. */
  readonly of: string;
  /** Its successor's name and block; null: no source type reads what comes after it. */
  readonly successor: { readonly name: string; readonly block: JsonObject } | null;
  /** What to ask the vendor, a sentence each. */
  readonly questions: readonly string[];
  /** What differs from the source, a sentence each. */
  readonly notes: readonly string[];
}

/** All that is proposed for a config. */
export interface Proposals {
  /** Upstreams that end, with the reason. */
  readonly ending: ReadonlyMap<string, string>;
  /** Where successors are read: its name and whole block, and what is open there. */
  readonly into: {
    readonly name: string;
    readonly block: JsonObject;
    readonly isNew: boolean;
    readonly notes: readonly string[];
  } | null;
  readonly sources: readonly Proposal[];
  /** Sources of such an upstream that have a successor in the config. */
  readonly done: ReadonlyMap<string, string>;
}

const openCompany = 'COMPANY_ID';

/** Proposes; `config` may hold placeholders for secrets. */
export function proposalFor(config: Config): Proposals {
  const ending = endingUpstreams(config);
  const done = new Map(
    Object.entries(config.sources).flatMap(([name, { settings }]) => {
      const { succeeds } = settings;
      const of = isObject(succeeds) ? succeeds.source : undefined;
      return typeof of === 'string' ? [[of, name] as const] : [];
    }),
  );
  const moving = Object.entries(config.sources).filter(
    ([name, { settings }]) => ending.has(settings.upstream) && !done.has(name),
  );
  if (moving.length === 0) return { ending, into: null, sources: [], done };
  const names = namesFor(
    moving.map(([name]) => name),
    Object.keys(config.sources),
  );
  const into = intoOf(
    config,
    moving.map(([, { settings }]) => settings.upstream),
  );
  const sources = moving.map(([name]) =>
    proposalOf(config, name, { names, done, upstream: into.name }),
  );
  return { ending, into, sources, done };
}

/** Why each upstream ends that does. */
function endingUpstreams({ upstreams }: Config): ReadonlyMap<string, string> {
  const unified = 'api: unified is the earlier API, which works until the end of 2026';
  return new Map(
    Object.entries(upstreams).flatMap(([name, { api }]) =>
      api === 'unified' ? [[name, unified] as const] : [],
    ),
  );
}

/** A name for each successor that no source has. */
function namesFor(
  moving: readonly string[],
  known: readonly string[],
): ReadonlyMap<string, string> {
  const taken = new Set(known);
  return new Map(
    moving.map((name) => {
      const candidates = ['next', ...Array.from({ length: 99 }, (_, n) => `next_${n + 2}`)].map(
        (suffix) => `${name.slice(0, 50)}_${suffix}`,
      );
      const free = candidates.find((one) => !taken.has(one) && namePattern.test(one)) ?? name;
      taken.add(free);
      return [name, free] as const;
    }),
  );
}

/** The services upstream of the config, or one to be added. */
function intoOf(config: Config, of: readonly string[]): NonNullable<Proposals['into']> {
  const services = Object.entries(config.upstreams).filter(([, { api }]) => api === 'services');
  const found = services.find(([, { companies }]) => companies.length > 0) ?? services[0];
  const companies = companiesOf(config.upstreams[of[0] ?? '']);
  if (found !== undefined) {
    const [name, settings] = found;
    const others = services.length - 1;
    const block = blockAt(config, 'upstreams', name);
    const lacks = settings.companies.length === 0;
    return {
      name,
      isNew: false,
      block: lacks ? { ...block, companies } : block,
      notes: [
        ...(others > 0
          ? [
              `the config has ${services.length} upstreams with api: services; check that ${name} is the one`,
            ]
          : []),
        ...(lacks ? ['companies: name the company ids; their paths need them'] : []),
      ],
    };
  }
  const name =
    ['services', 'services_api', 'successor'].find(
      (one) => !Object.hasOwn(config.upstreams, one),
    ) ?? 'successor_api';
  return {
    name,
    isNew: true,
    block: {
      api: 'services',
      base_url: 'https://svc.example.com',
      auth: {
        client_id: '${env:SERVICES_CLIENT_ID:-open}',
        client_secret: '${env:SERVICES_CLIENT_SECRET:-open}',
        scope: 'urn:vendor:api:public',
      },
      companies,
    },
    notes: [
      'base_url, scope and companies are open: set them to the values of the new API',
      'create an API user with read access in the operations portal, and give its id and secret as SERVICES_CLIENT_ID and SERVICES_CLIENT_SECRET',
    ],
  };
}

function companiesOf(old: UpstreamSettings | undefined): readonly string[] {
  return old === undefined || old.companies.length === 0 ? [openCompany] : old.companies;
}

interface Surroundings {
  readonly names: ReadonlyMap<string, string>;
  readonly done: ReadonlyMap<string, string>;
  readonly upstream: string;
}

function proposalOf(config: Config, of: string, { names, done, upstream }: Surroundings): Proposal {
  const old = config.sources[of];
  const written = blockAt(config, 'sources', of);
  const target = old === undefined ? null : targetOf(old);
  if (old === undefined || target === null || target.definition === null) {
    return { of, successor: null, questions: target?.questions ?? [], notes: [] };
  }
  const known = sourceBlock(target.definition).shape;
  const carried = Object.entries(written).flatMap(([key, value]): [string, Json][] => {
    if (notCarried.has(key) || value === undefined || !Object.hasOwn(known, key)) return [];
    if (key === 'each') return [[key, eachOf(value, { names, done })]];
    return [[key, folded.has(key) ? foldedIn(key, value) : value]];
  });
  const block: JsonObject = {
    type: target.definition.type,
    upstream,
    ...(Object.hasOwn(known, 'succeeds') && { succeeds: { source: of } }),
    ...target.block,
    ...Object.fromEntries(carried),
  };
  const name = names.get(of) ?? of;
  const { questions, notes } = target;
  return {
    of,
    successor: { name, block },
    questions,
    notes: [...notes, ...lostOf(written, target)],
  };
}

/** Keys that say where and how the old list is read. */
const notCarried = new Set([
  ...['type', 'upstream', 'path', 'params', 'pagination', 'order', 'order_by', 'start', 'method'],
  ...['body', 'response', 'detail', 'single', 'kind', 'succeeds', 'enrich'],
]);

/** Keys that hold paths within a record. */
const folded = new Set(['id', 'time', 'ignore', 'never_ignore', 'unordered', 'mapping']);

function foldedIn(key: string, value: Json): Json {
  if (typeof value === 'string') return foldedPath(value);
  if (Array.isArray(value)) return value.map((one: Json) => foldedIn(key, one));
  if (key !== 'mapping' || !isObject(value)) return value;
  const fields = isObject(value.fields ?? null) ? Object.entries(value.fields as JsonObject) : [];
  return {
    ...value,
    fields: Object.fromEntries(
      fields.map(([to, from]): [string, Json] => [to, foldedIn('', from ?? null)]),
    ),
  };
}

/** Parents are the successor's, where their source has one. */
function eachOf(each: Json, { names, done }: Omit<Surroundings, 'upstream'>): Json {
  if (!isObject(each) || typeof each.of !== 'string') return each;
  const of = names.get(each.of) ?? done.get(each.of) ?? each.of;
  const id = typeof each.id === 'string' ? { id: foldedPath(each.id) } : {};
  return { ...each, of, ...id };
}

/** What is written of the old source that the successor does not have. */
function lostOf(written: JsonObject, { path }: Target): readonly string[] {
  const notes: string[] = [];
  if (written.params !== undefined) {
    const names = Object.keys(written.params as object).join(', ');
    notes.push(`params of the source (${names}) are not carried over: add what the new API needs`);
  }
  if (path !== null && written.pagination !== undefined) {
    notes.push('pagination of the source is not carried over: pages become offsets');
  }
  return notes;
}

/** A block as it is written, without its secrets. */
function blockAt({ kept }: Config, section: 'sources' | 'upstreams', name: string): JsonObject {
  const blocks = isObject(kept) ? kept[section] : null;
  const block = isObject(blocks ?? null) ? (blocks as JsonObject)[name] : null;
  return isObject(block ?? null) ? (block as JsonObject) : {};
}
