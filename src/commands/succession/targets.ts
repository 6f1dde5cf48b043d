// The successor of each kind of source, as far as the services document shows it: `/tickets` becomes the ticketing API,
// `/hosts` the fleet API, `/utp` the threat-protection API. Logs and audit events have a logs API there, without a
// path.
// A successor is of the same kind as its source: a list, a collection, a list per parent.

import { type ConfiguredSource, sources } from '../../config/index.ts';
import type { SourceDefinition } from '../../contracts/config.ts';
import { invariant, type JsonObject } from '../../contracts/index.ts';

/** The successor of a source. */
export interface SuccessorTarget {
  /** Null: no source type reads it. */
  readonly definition: SourceDefinition | null;
  /** Where it is; null: open. */
  readonly path: string | null;
  /** Keys of its block that follow from where it is. */
  readonly block: JsonObject;
  readonly questions: readonly string[];
  readonly notes: readonly string[];
}

const company = '/companies/{company_id}';
const tickets = `/api/ticketing/v1${company}/tickets`;
const hosts = `/api/fleet/v1${company}/hosts`;
const blockList = `/api/threat-protection/v1${company}/block-list-entries`;
const exclusionList = `/api/threat-protection/v1${company}/exclusion-list-entries`;

/** The document's mapping, for the end of an old path. */
const mapped: readonly (readonly [pattern: RegExp, path: string, type: string])[] = [
  [/\/tickets$/i, tickets, 'tickets'],
  [/\/hosts$/i, hosts, 'hosts'],
  [/\/utp\/?.*(exclu|except|allow|white)/i, exclusionList, 'exclusion_list'],
  [/\/utp(\/|$)/i, blockList, 'block_list'],
];

/** The successor of a source; `api`: that of its upstream. */
export function targetOf(
  { definition, settings }: ConfiguredSource,
  api: 'unified' | 'services',
): SuccessorTarget {
  if (api === 'services') return laterVersion(definition);
  const path = typeof settings.path === 'string' ? settings.path.replace(/\/+$/, '') : '';
  const known = mapped.find(([pattern]) => pattern.test(path));
  if (definition.collection !== undefined) return collectionTarget(settings, known);
  if (definition.parents !== undefined) return parentsTarget(definition, path);
  if (definition.list !== undefined) {
    return listTarget(path, known, definition.reading(settings).records === 'audit');
  }
  return nothing(
    `${definition.type}: does the new API send webhooks? Its document shows none. If it does not, which list shows the same events?`,
  );
}

/** The services API announces new versions in the path, each service by itself. */
function laterVersion(definition: SourceDefinition): SuccessorTarget {
  const { type } = definition;
  const question = `${type}: which path succeeds it, such as another version of the same service?`;
  if (definition.fields.path === undefined) return nothing(question);
  return { definition, path: null, block: { path: null }, questions: [question], notes: [] };
}

type Known = (typeof mapped)[number] | undefined;

function collectionTarget(settings: ConfiguredSource['settings'], known: Known): SuccessorTarget {
  if (known === undefined) {
    const question = `${settings.type}: which path of the new API lists the same entities, and which field is their id?`;
    return {
      definition: typeNamed('collection'),
      ...{ path: null, block: { path: null, ...kindOf(settings) } },
      ...{ questions: [question], notes: [] },
    };
  }
  const [, path, type] = known;
  const definition = typeNamed(type);
  const isOff = settings.removals === true && type === 'tickets';
  return {
    ...{ definition, path, questions: questionsAbout(type) },
    block: isOff ? { removals: true } : {},
    notes: isOff
      ? [`removals: true reports deleted entities, as the source does; ${type} does not by default`]
      : [],
  };
}

function questionsAbout(type: string): readonly string[] {
  if (type === 'hosts' || type === 'tickets') return [];
  return [`${type}: which lists of /utp are block lists, and which are exclusion lists?`];
}

function kindOf({ kind, type }: ConfiguredSource['settings']): JsonObject {
  const plain = { sites: 'site', web_categories: 'web_category' }[type];
  if (typeof kind === 'string') return { kind };
  return plain === undefined ? {} : { kind: plain };
}

function listTarget(path: string, known: Known, isAudit: boolean): SuccessorTarget {
  const logs = typeNamed('logs');
  const records = isAudit && { records: 'audit' };
  if (known !== undefined) {
    const [, to] = known;
    return {
      ...{ definition: logs, path: to, questions: [], notes: [] },
      block: { path: to, pagination: { style: 'offset' }, ...records },
    };
  }
  const what = isAudit ? 'audit events' : `the records of ${path}`;
  return {
    definition: logs,
    path: null,
    block: { path: null, pagination: { style: 'cursor' }, ...records },
    questions: [
      `which path of the logs API lists ${what}? Is it one list per company ({company_id} in the path)?`,
      'is that list paged by cursor or by offset, and in which order are records?',
      'does a record have the same id in both APIs, as an integer and as text?',
      'which field of a record is its time, and how late can a record appear?',
      'how far back does the list reach, and what is the largest limit?',
    ],
    notes: [],
  };
}

function parentsTarget(definition: SourceDefinition, path: string): SuccessorTarget {
  const isObject = definition.type === 'investigations' || definition.type === 'changes';
  if (isObject) {
    return nothing(
      `${definition.type}: which path of the new API reads one by its id? Its document shows none.`,
    );
  }
  const isTicket = /\/tickets\/\{parent_id\}/i.test(path);
  return {
    definition: typeNamed('ticket_events'),
    path: isTicket ? `${tickets}/{parent_id}/events` : null,
    block: isTicket ? {} : { path: null },
    questions: isTicket
      ? []
      : [`${definition.type}: which path of the new API reads the same timeline of a {parent_id}?`],
    notes: [],
  };
}

function nothing(question: string): SuccessorTarget {
  return { definition: null, path: null, block: {}, questions: [question], notes: [] };
}

/** The source type of that name; there is one. */
export function typeNamed(type: string): SourceDefinition {
  const definition = sources.find((one) => one.type === type);
  invariant(definition !== undefined, `there is a source type ${type}`);
  return definition;
}
