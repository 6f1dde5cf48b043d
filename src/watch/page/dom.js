// How the page writes: elements with text, never markup. Every name and message on it may come from upstream, so the only
// ways in are `textContent` and attributes set one by one; the policy in the page's headers refuses the rest. Characters
// that cannot be seen, or that turn the text around them, are shown by their numbers: a line must not look like another.

const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text with each such character written as `\u202e`. */
export function visible(text) {
  return text.replace(
    unprintable,
    (mark) => `\\u${mark.codePointAt(0).toString(16).padStart(4, '0')}`,
  );
}

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
  node.append(...nodes(children));
  return node;
}

function nodes(children) {
  return children
    .filter((child) => child !== null)
    .map((child) => (typeof child === 'string' ? document.createTextNode(visible(child)) : child));
}

/**
 * Puts these children in place of what is there, and leaves what is already the same alone: focus, selection and an opened
 * detail survive a second.
 */
export function fill(parent, ...children) {
  const wanted = nodes(children);
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

/** The element with this id. */
export function at(id) {
  return document.getElementById(id);
}
