// Numbers, sizes, times and spans for readers.

const sizes = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `12.5 MiB`. */
export function size(bytes) {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < sizes.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${sizes[unit]}`;
}

/** `2 h 5 min`, `9 min 30 s`, `12 min`; a dash for null. */
export function span(ms) {
  if (ms === null) return '–';
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 600) return parts(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return parts(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min');
  return parts(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

function parts(most, unit, rest, smaller) {
  return rest === 0 ? `${most} ${unit}` : `${most} ${unit} ${rest} ${smaller}`;
}

/** `5 s ago`; `never` for null. */
export function ago(time, now) {
  if (time === null) return 'never';
  const ms = Math.max(0, now - Date.parse(time));
  return ms < 1000 ? 'now' : `${span(ms)} ago`;
}

/** `1,234`; small ones keep one digit. */
export function number(value) {
  const digits = Math.abs(value) < 10 && value % 1 !== 0 ? 1 : 0;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

/** `12k`, for axes. */
export function short(value) {
  return value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 });
}

/** `12.5/s`. */
export function rate(perSecond) {
  return `${number(perSecond)}/s`;
}

/** `14:05`, and `14:05:30` where a minute is long. */
export function clock(ms, withSeconds = false) {
  return new Date(ms).toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(withSeconds ? { second: '2-digit' } : {}),
  });
}

/** `1 stream`, `2 streams`. */
export function count(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
}
