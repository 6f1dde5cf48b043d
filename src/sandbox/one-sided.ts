// Records that one path shows differently from the other paths of the ledger, or hides: differences that a move between
// two APIs must find before the cutover. A script names the records by id.
import type { ListBehaviour } from './behaviour.ts';
import type { PagedList } from './lists.ts';

/** The list as its path shows it; the list itself if there is no difference. */
export function oneSided(list: PagedList, { hidden = [], differs = [] }: ListBehaviour): PagedList {
  if (hidden.length === 0 && differs.length === 0) return list;
  const left = new Set(hidden.map(String));
  return {
    path: list.path,
    ...(list.keys !== undefined && { keys: list.keys }),
    size: () => list.size(),
    first: () => list.first(),
    visible: (index) => list.visible(index) && !left.has(idIn(list.textAt(index))),
    dense: () => left.size === 0 && list.dense(),
    textAt(index) {
      const text = list.textAt(index);
      const id = idIn(text);
      return differs.reduce(
        (said, one) => (String(one.id) === id ? withMember(said, one) : said),
        text,
      );
    },
  };
}

/** The id is the first member of every record that has one. */
function idIn(text: string): string {
  return /^\{"\w*[iI]d":"?([^",}]*)/.exec(text)?.[1] ?? '';
}

function withMember(
  text: string,
  { field, value }: { readonly field: string; readonly value: unknown },
): string {
  return JSON.stringify({ ...JSON.parse(text), [field]: value });
}
