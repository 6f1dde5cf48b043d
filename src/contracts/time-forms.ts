// Time formats other than RFC 3339: those that are unambiguous, and those that a config declares
// (`time_formats`). Invariant: an ambiguous text, such as 05/11/2026, is not a time unless the
// config declares its format; a wrong time is worse than none. A text without a zone is in UTC, as
// upstream uses it.

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const monthNames =
  'january february march april may june july august september october november december'.split(
    ' ',
  );
const dayName = '(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? +)?';
const monthName = '([a-z]{3,9})\\.?';
const clock = '(\\d{1,2}):(\\d\\d)(?::(\\d\\d)(?:[.,](\\d{1,9}))?)?(?: ?([ap])\\.?m\\.?)?';
const zone = '(?: ?(z|utc?|gmt|[+-]\\d\\d(?::?\\d\\d)?|(?:utc|gmt)[+-]\\d\\d:?\\d\\d))?';
const rest = `(?:(?:t|,? +|:| at )${clock}${zone})?(?: \\([^()]*\\))?`;

/** The order of a date's parts; `unclear`: day or month first. */
type DateOrder = 'ymd' | 'dmy' | 'mdy' | 'unclear';

const form = (order: DateOrder, date: string) =>
  ({ order, pattern: new RegExp(`^${date}${rest}$`, 'i') }) as const;

const forms: readonly { readonly order: DateOrder; readonly pattern: RegExp }[] = [
  form('ymd', '(\\d{4})[-/.](\\d{1,2})[-/.](\\d{1,2})'),
  form('unclear', '(\\d{1,2})[-/](\\d{1,2})[-/](\\d{4})'),
  form('dmy', '(\\d{1,2})\\.(\\d{1,2})\\.(\\d{4})'),
  // RFC 5322, RFC 9110 and the Common Log Format.
  form('dmy', `${dayName}(\\d{1,2})[- /.]+${monthName}[- /,]+(\\d{4})`),
  form('mdy', `${dayName}${monthName} +(\\d{1,2}),? +(\\d{4})`),
];
/** `Fri Nov 20 10:00:00 2026` and `Fri Nov 20 10:00:00 UTC 2026`. */
const yearLast = new RegExp(`^${dayName}${monthName} +(\\d{1,2}) +${clock}${zone} +(\\d{4})$`, 'i');
/** `20261120T100000Z`. */
const compact =
  /^(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)?(?:[.,](\d{1,9}))?(z|[+-]\d\d(?::?\d\d)?)?$/i;

const lengthMin = 8;
const lengthMax = 80;

/** Epoch milliseconds of a time in one of these forms; NaN for any other text. */
export function parseOtherForm(text: string): number {
  if (text.length < lengthMin || text.length > lengthMax) return Number.NaN;
  for (const { order, pattern } of forms) {
    const found = pattern.exec(text);
    if (found === null) continue;
    const [, a, b, c, hour, minute, second, fraction, half, offset] = found;
    const date = dateOf(order, [a, b, c]);
    return date === null
      ? Number.NaN
      : timeOf({ ...date, hour, minute, second, fraction, half, offset });
  }
  const last = yearLast.exec(text);
  if (last !== null) {
    const [, month, day, hour, minute, second, fraction, half, offset, year] = last;
    return timeOf({
      ...{ year: Number(year), month: monthOf(month), day: Number(day) },
      ...{ hour, minute, second, fraction, half, offset },
    });
  }
  const short = compact.exec(text);
  if (short === null) return Number.NaN;
  const [, year, month, day, hour, minute, second, fraction, offset] = short;
  return timeOf({
    ...{ year: Number(year), month: Number(month), day: Number(day) },
    ...{ hour, minute, second, fraction, offset },
  });
}

/** The parts of a time as text. */
interface Parts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour?: string | undefined;
  readonly minute?: string | undefined;
  readonly second?: string | undefined;
  readonly fraction?: string | undefined;
  /** `a` or `p`, for a 12-hour clock. */
  readonly half?: string | undefined;
  readonly offset?: string | undefined;
}

/** Null if it could be two dates. */
function dateOf(
  order: DateOrder,
  [a = '', b = '', c = '']: readonly (string | undefined)[],
): Pick<Parts, 'year' | 'month' | 'day'> | null {
  const [one, two, three] = [Number(a), Number(b), Number(c)];
  switch (order) {
    case 'ymd':
      return { year: one, month: two, day: three };
    case 'dmy':
      return { year: three, month: monthOf(b), day: one };
    case 'mdy':
      return { year: three, month: monthOf(a), day: two };
    case 'unclear':
      if (one !== two && one <= 12 && two <= 12) return null;
      return one > 12
        ? { year: three, month: two, day: one }
        : { year: three, month: one, day: two };
  }
}

/** 1 to 12 from a name or a number; NaN otherwise. */
function monthOf(text = ''): number {
  if (/^\d+$/.test(text)) return Number(text);
  const name = text.toLowerCase();
  const isName = name.length === 3 || name === 'sept' || monthNames.includes(name);
  const at = months.indexOf(name.slice(0, 3));
  return isName && at >= 0 ? at + 1 : Number.NaN;
}

function timeOf(parts: Parts): number {
  const { year, month, day, half, fraction = '' } = parts;
  const hour = hourOf(Number(parts.hour ?? 0), half);
  const [minute, second] = [Number(parts.minute ?? 0), Number(parts.second ?? 0)];
  const ms = Number(fraction.padEnd(3, '0').slice(0, 3));
  // 60 is a leap second; it counts as the following second.
  if (!(year >= 1000 && hour <= 23 && minute <= 59 && second <= 60)) return Number.NaN;
  const midnight = new Date(Date.UTC(year, month - 1, day));
  // Date.UTC rolls an invalid month or day over into the next; that date is rejected.
  if (midnight.getUTCMonth() !== month - 1 || midnight.getUTCDate() !== day) return Number.NaN;
  return (
    midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + ms - offsetMs(parts.offset)
  );
}

function hourOf(hour: number, half: string | undefined): number {
  if (half === undefined) return hour;
  if (hour < 1 || hour > 12) return Number.NaN;
  return (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0);
}

/** Milliseconds ahead of UTC; without an offset, UTC. */
function offsetMs(offset = ''): number {
  const found = /([+-])(\d\d):?(\d\d)?$/.exec(offset);
  if (found === null) return 0;
  const [, sign, hours, minutes = '0'] = found;
  const ms = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const isOne = Number(hours) <= 23 && Number(minutes) <= 59;
  return isOne ? (sign === '-' ? -ms : ms) : Number.NaN;
}

/** The meaning of a directive: a pattern, and the part that it gives. */
const directives: Readonly<
  Record<string, readonly [pattern: string, part: keyof Parts | 'epoch' | 'shortYear' | null]>
> = {
  Y: ['(\\d{4})', 'year'],
  y: ['(\\d\\d)', 'shortYear'],
  m: ['(\\d{1,2})', 'month'],
  b: ['([A-Za-z]{3,9})', 'month'],
  B: ['([A-Za-z]{3,9})', 'month'],
  d: [' ?(\\d{1,2})', 'day'],
  e: [' ?(\\d{1,2})', 'day'],
  H: ['(\\d{1,2})', 'hour'],
  I: ['(\\d{1,2})', 'hour'],
  M: ['(\\d{1,2})', 'minute'],
  S: ['(\\d{1,2})', 'second'],
  f: ['(\\d{1,9})', 'fraction'],
  p: ['([AaPp])\\.?[Mm]\\.?', 'half'],
  z: ['([Zz]|[+-]\\d\\d:?\\d\\d|[+-]\\d\\d)', 'offset'],
  Z: ['(?:UTC|GMT|UT|Z)', null],
  a: ['[A-Za-z]{2,9}', null],
  A: ['[A-Za-z]{2,9}', null],
  s: ['(\\d{1,12})', 'epoch'],
  '%': ['%', null],
};
/** Directives that stand for several. */
const shorthands: Readonly<Record<string, string>> = { F: '%Y-%m-%d', T: '%H:%M:%S', R: '%H:%M' };

/** All directives of `time_formats`, for messages. */
const timeDirectives: string = [...Object.keys(directives), ...Object.keys(shorthands)]
  .map((name) => `%${name}`)
  .join(' ');

/** The flaw of an entry of `time_formats`; null: none. */
export function timeFormatFlaw(format: string): string | null {
  const unknown = [...format.matchAll(/%(.?)/g)].find(
    ([, name = '']) => !Object.hasOwn(directives, name) && !Object.hasOwn(shorthands, name),
  );
  if (unknown !== undefined)
    return `${JSON.stringify(format)} has ${JSON.stringify(unknown[0])}, expected one of ${timeDirectives}`;
  const spelled = spelledOut(format);
  const has = (...names: readonly string[]) => names.some((name) => spelled.includes(`%${name}`));
  if (has('s') || (has('Y', 'y') && has('m', 'b', 'B') && has('d', 'e'))) return null;
  return `${JSON.stringify(format)} is no whole date, expected year, month and day such as "%d.%m.%Y %H:%M:%S", or %s`;
}

function spelledOut(format: string): string {
  return format.replace(/%([FTR])/g, (_, name: string) => shorthands[name] ?? '');
}

/** Returns a parser for texts in these formats, tried in order; NaN for any other text. */
export function compileTimeFormats(formats: readonly string[]): (text: string) => number {
  const compiled = formats.map(compileTimeFormat);
  return (text) => {
    if (text.length > lengthMax) return Number.NaN;
    for (const parse of compiled) {
      const time = parse(text);
      if (!Number.isNaN(time)) return time;
    }
    return Number.NaN;
  };
}

function compileTimeFormat(format: string): (text: string) => number {
  const parts: (keyof Parts | 'epoch' | 'shortYear')[] = [];
  const source = spelledOut(format).replace(/%(.)|[^%]/gs, (one, name: string | undefined) => {
    if (name === undefined) return one.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
    const [pattern, part] = directives[name] ?? ['(?!)', null];
    if (part !== null) parts.push(part);
    return pattern;
  });
  const pattern = new RegExp(`^${source}$`);
  return (text) => {
    const found = pattern.exec(text);
    if (found === null) return Number.NaN;
    const given = Object.fromEntries(parts.map((part, at) => [part, found[at + 1]]));
    const { epoch, shortYear } = given;
    if (epoch !== undefined) return Number(epoch) * 1000;
    const year = shortYear === undefined ? Number(given.year) : 2000 + Number(shortYear);
    return timeOf({ ...given, year, month: monthOf(given.month), day: Number(given.day) });
  };
}
