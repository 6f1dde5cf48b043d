// Reads attributes of an OCSF event for formats. The normaliser guarantees the shape, but a
// declared mapping may set anything anywhere, and a format must not throw on any event. So
// attributes are read step by step without assumptions: a missing value, or one of another type,
// gives an empty object or `undefined`.

import { isObject, type Json, type JsonObject, type OcsfEvent } from '../src/contracts/index.ts';

const identityCategory = 3;
const findings = 2;
const authentication = 3002;
const nothing: JsonObject = Object.freeze({});

/** The object, or an empty one if the value is not an object. */
export function part(value: unknown): JsonObject {
  return isObject(value) ? value : nothing;
}

/** The first member of a list of objects, or an empty object. */
export function firstOf(value: unknown): JsonObject {
  return Array.isArray(value) ? part(value[0]) : nothing;
}

/** True for a finding, whose status is the progress of its investigation. */
export function isFinding({ category_uid }: OcsfEvent): boolean {
  return category_uid === findings;
}

/**
 * The actor as a user: the actor's user; at a login the user who logs in; otherwise a program that
 * acts by itself, such as an AI agent. Empty if unknown. In other identity events `user` is the
 * target.
 */
export function actingUser({ actor, user, category_uid, class_uid }: OcsfEvent): JsonObject {
  const own = part(actor).user;
  if (isObject(own)) return own;
  if (isObject(user) && (category_uid !== identityCategory || class_uid === authentication))
    return user;
  const { app_name: name, app_uid: uid } = part(actor);
  return name === undefined && uid === undefined ? nothing : programOf(name, uid);
}

function programOf(name: Json | undefined, uid: Json | undefined): JsonObject {
  return { ...(name !== undefined && { name }), ...(uid !== undefined && { uid }) };
}

/** The text, or `undefined` if the value is not a text or is empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The whole number from 0, or `undefined`; beyond 2^53 it differs from upstream's. */
export function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A TCP or UDP port, or `undefined`. */
export function portOf(value: unknown): number | undefined {
  const port = countOf(value);
  return port !== undefined && port <= 65_535 ? port : undefined;
}

/** Epoch milliseconds as a whole number that a date can hold, or `undefined`. */
export function epochMsOf(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15 ? Math.trunc(value) : undefined;
}

/** Severity as one of the OCSF levels 0 to 6; `Other` and invalid values give 0, unknown. */
export function severityOf(value: unknown): number {
  const level = countOf(value);
  return level !== undefined && level <= 6 ? level : 0;
}

/**
 * A class's name in lower_snake_case, at most 32 characters of printable ASCII, e.g.
 * `api_activity`: valid as a syslog MSGID and as an event name. `undefined` if there is no name.
 */
export function classNameOf(value: unknown): string | undefined {
  const name = textOf(value);
  if (name === undefined) return undefined;
  const snake = name
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_');
  return snake.replace(/^_|_$/g, '').slice(0, 32) || undefined;
}

/**
 * The action, in upstream's own word if known: a device's decision (of OCSF's two attributes the
 * more precise one: Dropped, where the action is Denied), the called operation, the event code of
 * an identity event (which names an operation; elsewhere it may be a signature), otherwise the
 * activity.
 */
export function actionOf(ocsf: OcsfEvent): string | undefined {
  return (
    textOf(ocsf.disposition) ??
    textOf(ocsf.action) ??
    textOf(part(ocsf.api).operation) ??
    (ocsf.category_uid === identityCategory ? textOf(part(ocsf.metadata).event_code) : undefined) ??
    textOf(ocsf.activity_name)
  );
}

const allowedId = 1;
const deniedId = 2;
/** Of `disposition_id`: Blocked, Quarantined, Isolated, Dropped, Reset, Access Revoked, Rejected, Unauthorized. */
const deniedDispositions: ReadonlySet<unknown> = new Set([2, 3, 4, 6, 21, 24, 25, 26]);

/** A device's decision about the event, if any; observed or changed is neither. */
export function deviceVerdict({
  action_id,
  disposition_id,
}: OcsfEvent): 'allowed' | 'denied' | null {
  if (action_id === deniedId || deniedDispositions.has(disposition_id)) return 'denied';
  return action_id === allowedId || disposition_id === allowedId ? 'allowed' : null;
}

/**
 * `status_id` 1 success or 2 failure, from the event, otherwise from what was allowed or denied;
 * undefined if neither is known, and for a finding, whose status is the progress of its
 * investigation.
 */
export function resultOf(ocsf: OcsfEvent): 1 | 2 | undefined {
  if (isFinding(ocsf)) return undefined;
  if (ocsf.status_id === 1 || ocsf.status_id === 2) return ocsf.status_id;
  const verdict = ocsf.status_id === undefined || ocsf.status_id === 0 ? deviceVerdict(ocsf) : null;
  return verdict === null ? undefined : verdict === 'allowed' ? 1 : 2;
}

/** The outcome in words; undefined if unknown. */
export function outcomeText(ocsf: OcsfEvent): string | undefined {
  return ocsf.status_id === 0 ? undefined : textOf(ocsf.status);
}
