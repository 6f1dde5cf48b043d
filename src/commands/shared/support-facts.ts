// The facts of a support bundle. Invariant: text from upstream, receivers and records is left out by its key, and an
// unknown key holds no text: a new key of the status is out of the bundle until it is listed here.

import { shownSetting } from '../../config/index.ts';
import { isObject, type Json } from '../../contracts/index.ts';
import { ownPath } from '../../run/index.ts';
import type { StoredStatus } from '../../watch/index.ts';

const leftOut = '[not in the bundle]';

/** Keys of the status whose texts sluice makes itself, or that name a part of the config. */
const ownTexts: ReadonlySet<string> = new Set([
  ...['name', 'source', 'stream', 'sink', 'upstream', 'company', 'type', 'state', 'order', 'code'],
  ...['condition', 'waits_for', 'running', 'state_dir', 'route', 'ends_from', 'phase', 'successor'],
  ...['request_id', 'trace_id'],
]);
const timeForm = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const idForm = /^[A-Za-z0-9._:-]{1,128}$/;
const ids: ReadonlySet<string> = new Set(['request_id', 'trace_id']);

/** A status without texts from outside. */
export function ownFacts(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((one) => ownFacts(one, key));
  if (isObject(value)) {
    const entries = Object.entries(value).map(([name, one]) => [name, ownFacts(one, name)]);
    return Object.fromEntries(entries);
  }
  if (typeof value !== 'string') return value;
  if (ids.has(key)) return idForm.test(value) ? value : leftOut;
  return ownTexts.has(key) || timeForm.test(value) ? value : leftOut;
}

/** Keys of a config whose values may be secret although they are plain text. */
const secretKeys =
  /^(params|body|headers|tokens?|password|secret|api_key|client_secret|credentials|key|signing_key.*|proxy|auth|basic_auth|sasl|username|client_id)$/;

/** A stored config without its secrets and without values that may be some; references stay. */
export function configFacts(value: Json, isSecret = false): Json {
  if (Array.isArray(value)) return value.map((one) => configFacts(one, isSecret));
  if (isObject(value)) {
    const entries = Object.entries(value).map(([name, one]) => [
      name,
      configFacts(one as Json, isSecret || secretKeys.test(name)),
    ]);
    return Object.fromEntries(entries) as Json;
  }
  if (typeof value !== 'string') return isSecret ? leftOut : value;
  const { text, isReference } = shownSetting(value);
  if (isSecret) return isReference ? text : leftOut;
  // User and password, and the query, of an address.
  return text.replace(/\/\/[^/\s@]*@/g, '//').replace(/\?.*$/, '');
}

/** The last errors: of streams and sinks now, and of log lines. */
export function lastErrors(
  { streams, sinks }: Pick<StoredStatus, 'streams' | 'sinks'>,
  lines: readonly string[],
) {
  const now = [...streams, ...sinks].flatMap(({ name, error }) =>
    error === null ? [] : [{ name, code: error.code, endpoint: endpointOf(error.message) }],
  );
  const logged = lines.flatMap((line) => {
    const fields: unknown = JSON.parse(line);
    if (!isObject(fields)) return [];
    const { level } = fields as Record<string, unknown>;
    return level === 'error' || level === 'warn' ? [fields] : [];
  });
  return { now, logged: logged.slice(-100) };
}

/** The path that a message begins with; null: it names none. */
function endpointOf(message: string): string | null {
  const path = /^requesting (\/\S*) from /.exec(message)?.[1];
  return path === undefined ? null : ownPath(path);
}
