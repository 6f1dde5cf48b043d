// JSON text of any value in an event. `JSON.stringify` is the fastest serialiser and suffices for
// plain content; it throws on a bigint, a cycle, or nesting deeper than the stack. Records are
// parsed JSON of bounded depth, so none of these should occur; if one does, the event is still
// delivered, and only values that JSON cannot express are lost.

const depthMax = 100;
const invisibleAll = /[\x7f-\x9f\u2028\u2029]/g;

/** The value as JSON text, without CR or LF. Never throws. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    return JSON.stringify(plain(value, [])) ?? 'null';
  }
}

/**
 * JSON text with DEL, the C1 controls and the Unicode line separators escaped too, which JSON
 * permits but does not require: these characters occur only inside strings. For lines whose readers
 * may break or alter them.
 */
export function visibleJson(json: string): string {
  // Pure ASCII is most common, and these two tests are many times faster than a regular expression.
  if (Buffer.byteLength(json) === json.length && !json.includes('\x7f')) return json;
  return json.replace(
    invisibleAll,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function plain(value: unknown, above: readonly object[]): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'function') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[circular]';
  if (above.length >= depthMax) return '[nested too deeply]';
  const path = [...above, value];
  if (Array.isArray(value)) return value.map((item) => plain(item, path));
  const copy = Object.create(null);
  for (const [key, member] of Object.entries(value)) copy[key] = plain(member, path);
  return copy;
}
