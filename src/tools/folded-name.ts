// Names of one field in two APIs: camelCase in the earlier one, snake_case in its successor. A name
// is folded to snake_case, both to compare records of the two and to propose paths. Invariants: a
// snake_case name stays unchanged; a path keeps its number of steps.

const isFolded = /^[a-z0-9_.]*$/;

/** `requestId` as `request_id`, `sourceIP` as `source_ip`, `IPv4Address` as `ipv4_address`. */
export function foldedName(name: string): string {
  if (isFolded.test(name)) return name;
  return name
    .replace(/IPv(?=[46])/g, 'Ipv')
    .replace(/(\p{Ll}|\p{Nd})(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

/** Each step of a dotted path folded. */
export function foldedPath(path: string): string {
  return path.split('.').map(foldedName).join('.');
}
