// Numbers, sizes, times and spans as people read them.

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

/** `2 h 5 min`; a dash for null. */
export function span(ms) {
  if (ms === null) return '–';
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** `5 s ago`; `never` for null. */
export function ago(time, now) {
  return time === null ? 'never' : `${span(Math.max(0, now - Date.parse(time)))} ago`;
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

/** `14:05`. */
export function clock(ms) {
  return new Date(ms).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

/** `1 stream`, `2 streams`. */
export function count(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
}
