// The words that texts of sluice do not use, and the term of the field in place of each. Invariant: a
// pattern matches only senses that have a better word; a sense that is right is in `literal`, which is removed before
// the patterns are tried. `held` has no pattern: stored pages are held in the spool, which no pattern can see.

/** One row. */
interface Word {
  readonly not: string;
  readonly but: string;
  readonly match: RegExp;
}

/** The dictionary. */
const dictionary: readonly Word[] = [
  word('tell', 'report, emit, log, show', /\b(tells?|told|telling|untold)\b/gi),
  word('far side, far end', 'receiver, destination, broker, peer', /\bfar (side|end)s?\b/gi),
  word(
    "upstream's word",
    'response, acknowledgement',
    /\b(upstream|receiver|sink)['’]s words?\b/gi,
  ),
  word('nobody, whoever', "the actor's name", /\b(nobody|whoever|(those|for|of) who)\b/gi),
  word('go on', 'resume, continue', /\b(go|goes|going|went|gone) on\b/gi),
  word('anew', 'again, restart', /\banew\b/gi),
  word(
    'let go, give out',
    'release, publish',
    /\b(lets?|letting) go\b|\b(gives?|gave|given) out\b/gi,
  ),
  word(
    'take (of a receiver)',
    'accept, acknowledge',
    /\b(receivers?|brokers?|upstream|servers?|collector|indexers?|sinks?|endpoint|service) (takes?|took|(has|have) taken|does not take)\b(?! (over|part|up to|place))/gi,
  ),
  word('ask', 'request, poll, query, prompt', /\bask(s|ed|ing)?\b/gi),
  word('mend', 'repair, correct', /\bmend(s|ed|ing)?\b/gi),
  word('met, heard', 'seen, received', /\b(met|heard)\b/gi),
  word('behind (order)', 'after', /\bbehind (it|them|the (last|first|body))\b/gi),
  word('from afar', 'remote', /\bafar\b/gi),
  word('what must stay true', 'invariant', /\bwhat must stay true\b/gi),
  word('wanted', 'requested, expected, target', /\b(un)?wanted\b/gi),
  word('standing', 'status', /\bstanding\b/gi),
  word('letters', 'dead letters', /(?<!dead[- ])\bletters?\b/gi),
  word('round', 'full scan', /\brounds?\b/gi),
  word('circle', 'cursor loop, cycle', /\bcircles?\b/gi),
  word('seat, keeper', 'shard worker, shard supervisor', /\b(seat|keeper)s?\b/gi),
  word('place', 'position, offset, cursor, location', /\bplaces?\b/gi),
  word('besides', 'also, in addition to', /\bbesides\b/gi),
  word('such a, thereof, of it', 'the noun', /\bsuch an?\b|\bthereof\b|\bof it\b/gi),
  word('left out:', 'default:', /\bleft out:|\bif left out\b/gi),
];

/** Senses that are right. */
const literal: readonly RegExp[] = [
  /\bstanding by\b/gi,
  /\b(in|takes?|took) place\b/gi,
  /\b(lower-case |upper-case |with (a )?)?letters?, (digits|then)\b|\bwith letters\b|\bbegins with a letter\b/gi,
  /\bround[- ](trip|robin)s?\b|\brounded\b/gi,
  /\bask the (vendor|operator|owner)\b/gi,
];

/** Member words of identifiers that have a better one, and it. */
const identifierWords: ReadonlyMap<string, string> = new Map([
  ...['tell', 'tells', 'told'].map((one) => [one, 'report'] as const),
  ...['nobody', 'whoever'].map((one) => [one, "the actor's name"] as const),
  ...['wanted', 'unwanted'].map((one) => [one, 'requested'] as const),
  ...['mend', 'mended', 'mending'].map((one) => [one, 'repair'] as const),
  ...['heard', 'met'].map((one) => [one, 'received, seen'] as const),
  ['anew', 'again'],
  ['afar', 'remote'],
  ['means', 'deps'],
  ['standing', 'status'],
  ['letters', 'deadLetters'],
  ['round', 'fullScan'],
  ['circle', 'cursorLoop'],
  ['seat', 'worker'],
  ['keeper', 'supervisor'],
]);

/**
 * Names that cannot change, by package: keys of the contract, keys of stored data, and terms of a standard. Local names
 * for their values have better words.
 */
const fixedNames: Readonly<Record<string, readonly string[]>> = {
  // `status --json`.
  everywhere: ['standing_by'],
  // Checkpoints of collections, lists and parents, and notes of silent streams.
  'src/collection': ['statesTold', 'told', '_told'],
  'src/fetch': ['heardAt', 'told'],
  'src/list': ['countAnew', 'round', 'standingBefore', 'told', 'toldAt', 'wanted'],
  'src/parents': ['told'],
  'src/succession': ['standingBefore', 'wanted'],
  // Stored requests of operators, and files of backfills.
  'src/cluster': ['isAnew'],
  'src/commands': ['isAnew', 'round'],
  'src/hold': ['isAnew', 'letters', 'wanted'],
  'src/operator': ['isAnew', 'letters'],
  'src/run': ['isAnew', 'letters'],
  // xxHash has rounds.
  'src/parquet': ['round'],
};

/** The dictionary's words in a text, with the better ones. */
export function wordsIn(text: string): readonly { readonly found: string; readonly but: string }[] {
  const rest = literal.reduce((left, sense) => left.replace(sense, ' '), text);
  return dictionary.flatMap(({ match, but }) =>
    [...rest.matchAll(match)].map(([found]) => ({ found, but })),
  );
}

/** True for a name with a word that has a better one, unless the name is fixed in the package. */
export function isToRename(name: string, of: string): boolean {
  if (fixedNames.everywhere?.includes(name) || fixedNames[of]?.includes(name)) return false;
  return partsOf(name).some((part) => identifierWords.has(part));
}

/** The words of an identifier: `toldAt`, `MAX_ROUND` and `dead_letters` have two each. `deadLetters` is one. */
export function partsOf(identifier: string): readonly string[] {
  return identifier
    .replace(/dead_?letters/gi, 'dead')
    .split(/_|(?<=[a-z0-9])(?=[A-Z])/)
    .map((part) => part.toLowerCase());
}

function word(not: string, but: string, match: RegExp): Word {
  return { not, but, match };
}
