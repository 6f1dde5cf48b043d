// The facts that the comparison takes from an event: the entity of a change; the action and the
// entity of an audit event. Both are read from OCSF events as sinks get them, so that one config of
// paths serves every source.

import type { Json, MatchPaths, OcsfEvent, PageContext } from '../contracts/index.ts';
import type { DriftOperation, OpenChange, OpenEvent } from './state.ts';

const operations = new Map<unknown, DriftOperation>([
  ['created', 'created'],
  ['updated', 'updated'],
  ['deleted', 'deleted'],
]);

/** A change; null for other records, such as a baseline. */
export function driftChange(
  event: OcsfEvent,
  { source, stream, company }: PageContext,
  paths: MatchPaths,
): Omit<OpenChange, 'from'> | null {
  const { uid, event_code: code = '' } = event.metadata;
  const at = code.lastIndexOf('.');
  const operation = operations.get(code.slice(at + 1));
  const keys = valuesAt(event, paths.changes);
  if (operation === undefined || keys.length === 0) return null;
  const [name = keys[0] ?? ''] = valuesAt(event, ['entity.name']);
  return {
    is: 'change',
    ...{ uid, source, stream, company: company ?? null, keys, operation },
    ...{ kind: code.slice(0, at), name, to: event.time, state: 'open' },
  };
}

/** The same in Entity Management and API Activity; any other activity counts as a change too. */
const activities: Readonly<Record<number, DriftOperation>> = {
  1: 'created',
  3: 'updated',
  4: 'deleted',
};
const reads = 2;
const entityManagement = 3004;
const apiActivity = 6003;
const failed = 2;

/** An audit event of a completed change; null for any other. */
export function eventIn(
  event: OcsfEvent,
  { source }: PageContext,
  paths: MatchPaths,
): OpenEvent | null {
  const { class_uid: classUid, activity_id: activity, status_id: status } = event;
  if (classUid !== entityManagement && classUid !== apiActivity) return null;
  if (activity === reads || status === failed) return null;
  const keys = valuesAt(event, paths.trail);
  if (keys.length === 0) return null;
  const [type = ''] = valuesAt(event, paths.type);
  const [company = null] = valuesAt(event, paths.company);
  const { user } = event.actor ?? {};
  const { uid, event_code: action = '' } = event.metadata;
  return {
    is: 'event',
    ...{ uid, source, company, keys, type, action, at: event.time, state: 'open' },
    actor: user?.name ?? user?.email_addr ?? user?.uid ?? null,
    operation: activities[activity] ?? null,
  };
}

/** An entity has few names; with more, the value is ignored. */
const valuesMax = 20;
const valueLengthMax = 200;

function valuesAt(event: OcsfEvent, paths: readonly string[]): string[] {
  const values = paths.flatMap((path) => valuesIn(event as unknown as Json, path.split('.')));
  const texts = values.flatMap((value) =>
    (typeof value === 'string' && value !== '') || typeof value === 'number'
      ? [String(value).slice(0, valueLengthMax)]
      : [],
  );
  return [...new Set(texts)].slice(0, valuesMax);
}

function valuesIn(value: Json | undefined, path: readonly string[]): readonly Json[] {
  if (Array.isArray(value)) return value.flatMap((one) => valuesIn(one, path));
  const [key, ...rest] = path;
  if (key === undefined) return value === undefined ? [] : [value];
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return [];
  return valuesIn((value as Readonly<Record<string, Json>>)[key], rest);
}
