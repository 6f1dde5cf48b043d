// How the page writes: elements with text, never markup. Every name and message on it may come from upstream, so the only
// ways in are `textContent` and attributes set one by one; the policy in the page's headers refuses the rest.

/**
 * An element with its attributes, and children that are elements or text. SVG where the name starts with `svg:`.
 * @param {string} name
 * @param {Record<string, string | number | null | undefined>} attributes
 * @param {...(Node | string | null)} children
 */
export function make(name, attributes = {}, ...children) {
  const svg = name.startsWith('svg:');
  const node = svg
    ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/**
 * Puts these children in place of what is there, and leaves what is already the same alone: focus, selection and an opened
 * detail survive a second.
 */
export function fill(parent, ...children) {
  const wanted = children
    .filter((child) => child !== null)
    .map((child) => (typeof child === 'string' ? document.createTextNode(child) : child));
  wanted.forEach((child, index) => {
    const present = parent.childNodes[index];
    if (present === undefined) parent.append(child);
    else if (!merge(present, child)) parent.replaceChild(child, present);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

/** Makes `present` like `wanted` where they are of one kind; false where it has to be replaced. */
function merge(present, wanted) {
  if (present.nodeName !== wanted.nodeName) return false;
  if (present.nodeType === Node.TEXT_NODE) {
    if (present.data !== wanted.data) present.data = wanted.data;
    return true;
  }
  for (const { name } of [...present.attributes]) {
    // What the reader has opened stays open.
    if (!wanted.hasAttribute(name) && name !== 'open') present.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (present.getAttribute(name) !== value) present.setAttribute(name, value);
  }
  fill(present, ...wanted.childNodes);
  return true;
}

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

/** `2 h 5 min`; `-` for null. */
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

/** `1 234`; rates keep one digit while they are small. */
export function number(value) {
  const digits = Math.abs(value) < 10 && value % 1 !== 0 ? 1 : 0;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

/** `12.5/s`. */
export function rate(perSecond) {
  return `${number(perSecond)}/s`;
}
