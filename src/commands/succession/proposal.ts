// A successor for each source of an upstream that ends, from the config alone. Known facts: the paths of the services
// document's mapping (`/tickets`, `/hosts`, `/utp`), that names become snake_case and ids text, and that pages become
// offsets. Facts that are not in the document stay open, with the question for the vendor. Invariants: no guess can
// lead to the wrong list, and the source's settings for reading are carried over.

import {
  type Config,
  namePattern,
  sourceBlock,
  type UpstreamEnd,
  type UpstreamSettings,
  upstreamEnd,
} from '../../config/index.ts';
import { invariant, isObject, type Json, type JsonObject } from '../../contracts/index.ts';
import { foldedPath, timeText } from '../../tools/index.ts';
import { blockAt, type Into, intoOf } from './into.ts';
import { type SuccessorTarget, targetOf } from './targets.ts';

/** One source that has to move. */
export interface Proposal {
  /** The source's name, and the path that it reads; empty: it has none. */
  readonly of: string;
  readonly path: string;
  /** Its successor's name and block; null: no source type reads the succeeding API. */
  readonly successor: { readonly name: string; readonly block: JsonObject } | null;
  /** Questions for the vendor, a sentence each. */
  readonly questions: readonly string[];
  /** Differences from the source, a sentence each. */
  readonly notes: readonly string[];
}

/** All that is proposed for a config. */
export interface Proposals {
  /** Upstreams that end, with the reason. */
  readonly ending: ReadonlyMap<string, string>;
  /** The upstream of the successors: its name and whole block, and its open values. */
  readonly into: Into | null;
  readonly sources: readonly Proposal[];
  /** Sources of the ending upstream that already have a successor in the config. */
  readonly done: ReadonlyMap<string, string>;
}

/** Proposes; `config` may hold placeholders for secrets. */
export function proposalFor(
  config: Config,
  endOf: (upstream: string, settings: UpstreamSettings) => UpstreamEnd = (_, settings) =>
    upstreamEnd(settings, []),
): Proposals {
  const ending = endingUpstreams(config, endOf);
  const done = new Map(
    Object.entries(config.sources).flatMap(([name, { succeeds }]) =>
      succeeds === undefined ? [] : [[succeeds.source, name] as const],
    ),
  );
  const moving = Object.entries(config.sources).filter(
    ([name, { settings }]) => ending.has(settings.upstream) && !done.has(name),
  );
  if (moving.length === 0) return { ending, into: null, sources: [], done };
  const names = namesFor(
    moving.map(([name]) => name),
    Object.keys(config.sources),
  );
  const into = intoOf(config, ending, moving[0]?.[1].settings.upstream ?? '');
  const sources = moving.map(([name]) =>
    proposalOf(config, name, { names, done, upstream: into.name }),
  );
  return { ending, into, sources, done };
}

/** Why each upstream ends that does. */
function endingUpstreams(
  { upstreams }: Config,
  endOf: (upstream: string, settings: UpstreamSettings) => UpstreamEnd,
): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(upstreams).flatMap(([name, settings]) => {
      const { endsMs, from, endpoint } = endOf(name, settings);
      if (endsMs === null) return [];
      const origin = {
        config: `upstreams.${name}.ends`,
        sunset: `the Sunset header of ${endpoint}`,
        deprecation: `the Deprecation header of ${endpoint}`,
        default: 'the services document: the earlier unified API works until the end of 2026',
      }[from];
      return [[name, `${timeText(endsMs)} (${origin})`] as const];
    }),
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

interface Surroundings {
  readonly names: ReadonlyMap<string, string>;
  readonly done: ReadonlyMap<string, string>;
  readonly upstream: string;
}

function proposalOf(config: Config, of: string, { names, done, upstream }: Surroundings): Proposal {
  const old = config.sources[of];
  const written = blockAt(config, 'sources', of);
  invariant(old !== undefined, 'a source that moves is in the config');
  const { api = 'unified' } = config.upstreams[old.settings.upstream] ?? {};
  const target = targetOf(old, api);
  const path = typeof old.settings.path === 'string' ? old.settings.path : '';
  if (target.definition === null) {
    return { of, path, successor: null, questions: target.questions, notes: [] };
  }
  const left = api === 'services' ? ofPlace : notCarried;
  const known = sourceBlock(target.definition).shape;
  const carried = Object.entries(written).flatMap(([key, value]): [string, Json][] => {
    if (left.has(key) || value === undefined || !Object.hasOwn(known, key)) return [];
    if (key === 'each') return [[key, eachOf(value, { names, done })]];
    return [[key, folded.has(key) && api === 'unified' ? foldedIn(key, value) : value]];
  });
  const block: JsonObject = {
    type: target.definition.type,
    upstream,
    succeeds: { source: of },
    ...target.block,
    ...Object.fromEntries(carried),
  };
  const name = names.get(of) ?? of;
  const { questions, notes } = target;
  return {
    ...{ of, path },
    successor: { name, block },
    questions,
    notes: [...notes, ...(api === 'unified' ? lostOf(written, target) : [])],
  };
}

/** Keys with the location of the old list. */
const ofPlace = new Set(['type', 'upstream', 'path', 'detail', 'start', 'succeeds']);

/** The same, with the keys for how the list is read. */
const notCarried = new Set([
  ...ofPlace,
  ...['params', 'pagination', 'order', 'order_by', 'method', 'body', 'response', 'single', 'kind'],
  'enrich',
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

/** Settings of the old source that the successor does not have. */
function lostOf(written: JsonObject, { path }: SuccessorTarget): readonly string[] {
  const notes: string[] = [];
  if (written.params !== undefined) {
    const names = Object.keys(written.params as object).join(', ');
    notes.push(
      `params of the source (${names}) are not carried over: add the parameters that the new API needs`,
    );
  }
  if (path !== null && written.pagination !== undefined) {
    notes.push('pagination of the source is not carried over: pages become offsets');
  }
  return notes;
}
