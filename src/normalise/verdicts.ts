// The words by which security products report their decision about a flow, a request or a file, as
// OCSF's `action_id` and `disposition_id` (https://schema.ocsf.io/1.8.0/profiles/security_control).
// Words are compared without case, blanks and punctuation. Invariant: only a mapped attribute of an
// event is a verdict; the same word in the data of a changed object is its configuration.

import { canonicalName } from './slots.ts';

/** The meaning of a word as either attribute. */
export interface WordVerdict {
  readonly action: number;
  readonly disposition: number;
}

const rows: readonly (readonly [action: number, disposition: number, words: string])[] = [
  [1, 1, 'allow allows allowed allowing accept accepts accepted accepting'],
  [1, 1, 'permit permits permitted permitting pass passes passed passing granted'],
  [2, 2, 'block blocks blocked blocking deny denies denied denying prevent prevented'],
  [2, 6, 'drop drops dropped dropping discard discarded'],
  [2, 25, 'reject rejects rejected rejecting refuse refused'],
  [2, 21, 'reset resets resetted resetting resetboth resetclient resetserver tcpreset'],
  [2, 3, 'quarantine quarantines quarantined quarantining'],
  [2, 4, 'isolate isolates isolated isolating'],
  [3, 17, 'log logs logged logging logonly monitor monitors monitored monitoring'],
  [3, 19, 'alert alerts alerted alerting'],
  [3, 15, 'detect detects detected detecting'],
  // OCSF has no word for it: the activity was altered, as the product is configured to do.
  [4, 7, 'redirect redirects redirected redirecting'],
];

const verdicts: ReadonlyMap<string, WordVerdict> = new Map(
  rows.flatMap(([action, disposition, words]) =>
    words.split(' ').map((word) => [word, { action, disposition }] as const),
  ),
);

/** Longer than any of these words. */
const lengthMax = 32;

/** The verdict of a word; undefined if unknown. */
export function verdictOfWord(word: string): WordVerdict | undefined {
  return word.length > lengthMax ? undefined : verdicts.get(canonicalName(word));
}
