// Keys made from content, for elements that upstream sends without ids. An upstream id in the same form is matched like
// one of these.

/** The form of an id that is a digest of content. */
const contentId = /^sha256:[0-9a-f]{16}(#\d+)?$/;

/** True for the id of an element that upstream sent without one. */
function isContentId(id: string): boolean {
  return contentId.test(id);
}

/** The list of a key that is made from content; null for any other key. */
export function contentGroup(key: string): string | null {
  if (!key.includes('"sha256:')) return null;
  const parts = JSON.parse(key) as readonly string[]; // made from strings alone
  return isContentId(parts.at(-1) ?? '') ? JSON.stringify(parts.slice(0, -1)) : null;
}

/** A key that its list does not use: the element's own, or a numbered one. */
export function freshKey(ownKey: string, isUsed: (key: string) => boolean): string {
  if (!isUsed(ownKey)) return ownKey;
  const parts = JSON.parse(ownKey) as readonly string[]; // made from strings alone
  const name = (parts.at(-1) ?? '').replace(/#\d+$/, '');
  for (let n = 2; ; n += 1) {
    const key = JSON.stringify([...parts.slice(0, -1), `${name}#${n}`]);
    if (!isUsed(key)) return key;
  }
}
