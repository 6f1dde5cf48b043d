// Finds the known word that an author most likely meant by an unknown key or name.

const lengthMax = 64;
const candidatesMax = 500;

/** The nearest known word, if one is near enough. */
export function nearest(word: string, known: Iterable<string>): string | null {
  if (word.length > lengthMax) return null;
  const folded = fold(word);
  // A third of the word may be wrong, or two characters; words of three characters match by chance.
  let best = (word.length <= 3 ? 1 : Math.max(2, Math.floor(word.length / 3))) + 1;
  let found: string | null = null;
  let looked = 0;
  for (const candidate of known) {
    looked += 1;
    if (looked > candidatesMax) break;
    if (candidate.length > lengthMax) continue;
    const apart = isBeginning(folded, fold(candidate))
      ? 1
      : Math.abs(candidate.length - word.length) < best
        ? distance(folded, fold(candidate))
        : best;
    if (apart < best) {
      best = apart;
      found = candidate;
    }
  }
  return found;
}

/** `; did you mean NEAR?`, else the known words if there are few, else empty. */
export function hint(word: string, known: Iterable<string>): string {
  const all = [...known];
  const near = nearest(word, all);
  if (near !== null) return `; did you mean ${near}?`;
  if (all.length === 0 || all.length > listedMax) return '';
  return `; known: ${all.join(', ')}`;
}

/** The message for an unknown key. */
export function unknownKey(key: string, known: Iterable<string>): string {
  // A text that was copied from a web page may be indented with them.
  const [foreign] = /^[\p{Zs}\p{Cf}]/u.exec(key) ?? [];
  if (foreign !== undefined && foreign !== ' ') {
    const code = foreign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
    return `the line begins with the invisible character U+${code}; indent the line with blanks`;
  }
  if (key.includes(':'))
    return 'unknown key; write a blank between the colon of a key and its value';
  return `unknown key${hint(key, known)}`;
}

const listedMax = 20;

/** `pollSeconds`, `poll-seconds` and `poll_seconds` are the same word to a person. */
function fold(word: string): string {
  if (/^[a-z0-9_]*$/.test(word)) return word;
  return word
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

/** One word is a prefix of the other, as `warn` of `warning`. */
function isBeginning(a: string, b: string): boolean {
  return Math.min(a.length, b.length) >= beginningMin && (a.startsWith(b) || b.startsWith(a));
}

const beginningMin = 3;

/** Edits (insert, delete, replace, swap) between two words: optimal string alignment. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
