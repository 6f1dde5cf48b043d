// The checks for values of a fault script (fault-script.ts).

/** Returns the error of a value, or null. */
export type Check = (value: unknown) => string | null;

/** Any non-empty text. */
export const text: Check = (value) =>
  typeof value === 'string' && value !== '' ? null : 'must be text';
/** True or false. */
export const flag: Check = (value) => (typeof value === 'boolean' ? null : 'must be true or false');
/** Any value. */
export const anything: Check = () => null;
/** A number with a lower bound. */
export const atLeast =
  (low: number, whole = true): Check =>
  (value) => {
    const fits =
      typeof value === 'number' && value >= low && (!whole || Number.isSafeInteger(value));
    return fits ? null : `must be a ${whole ? 'whole ' : ''}number, ${low} or more`;
  };
/** One of these values. */
export const oneOf =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value) ? null : `must be one of ${words.map(String).join(', ')}`;
/** An HTTP status. */
export const statusCheck: Check = (value) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 200 && value <= 599
    ? null
    : 'must be an HTTP status from 200 to 599';
/** A path with `*` and `**`. */
export const path: Check = (value) =>
  typeof value === 'string' && /^(\/|\*)/.test(value)
    ? null
    : 'must be a path that begins with / or *';
/** A number, or a text. */
export const numberOrText: Check = (value) => (typeof value === 'number' ? null : text(value));
/** A date or a time of RFC 3339. */
export const time: Check = (value) =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\d(T.*)?$/.test(value) &&
  !Number.isNaN(Date.parse(value))
    ? null
    : 'must be a date or an RFC 3339 time';
/** An id of a record, as a number or as text. */
export const id: Check = (value) =>
  typeof value === 'number' || text(value) === null ? null : 'must be an id, a number or text';
/** A list of ids. */
export const ids: Check = (value) =>
  Array.isArray(value) && value.every((one) => id(one) === null) ? null : 'must be a list of ids';
/** Any number. */
export const signed: Check = (value) => (typeof value === 'number' ? null : 'must be a number');
