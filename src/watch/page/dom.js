// Elements with text, never markup. Names and messages may come from upstream, so the page only sets `textContent` and
// single attributes; the policy in the page's headers refuses everything else. Invisible characters, and those that change
// the direction of text, are shown as numbers, so that no line can look like another.

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
 * Replaces the children of `parent`, and keeps equal nodes: focus, selection and opened details survive an update.
 */
export function fill(parent, ...children) {
  const targets = nodes(children);
  targets.forEach((child, index) => {
    const present = parent.childNodes[index];
    if (present === undefined) parent.append(child);
    else if (!merge(present, child)) parent.replaceChild(child, present);
  });
  while (parent.childNodes.length > targets.length) parent.lastChild.remove();
}

/** Makes `present` equal to `target` if they are of one kind; false: the caller has to replace the node. */
function merge(present, target) {
  if (present.nodeName !== target.nodeName) return false;
  if (present.nodeType === Node.TEXT_NODE) {
    if (present.data !== target.data) present.data = target.data;
    return true;
  }
  for (const { name } of [...present.attributes]) {
    // Opened details stay open.
    if (!target.hasAttribute(name) && name !== 'open') present.removeAttribute(name);
  }
  for (const { name, value } of target.attributes) {
    if (present.getAttribute(name) !== value) present.setAttribute(name, value);
  }
  fill(present, ...target.childNodes);
  return true;
}

/** The element with this id. */
export function at(id) {
  return document.getElementById(id);
}
