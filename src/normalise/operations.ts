// Parses the name of an action, such as `policy.rule.update`, `CreateUser` or `user login failed`,
// into OCSF's activity, whether it is a login, and the kind of its target. Each distinct name is
// parsed once, so that an event costs one look-up.

import { memo } from './values.ts';

/** The parts of an action's name. */
export interface Operation {
  /** `activity_id` in API Activity: 1 create, 2 read, 3 update, 4 delete, 99 other. */
  readonly api: number;
  /** `activity_id` in Entity Management, which knows more verbs. */
  readonly entity: number;
  /** `activity_id` in Authentication: 1 logon, 2 logoff; 0 if the action is no login. */
  readonly login: number;
  /** `status_id` in the name itself (`login_failed`): 1, 2, or 0 for none. */
  readonly status: number;
  /** The kind of the target, e.g. `policy`; empty if the name has none. */
  readonly object: string;
}

interface Verb {
  readonly api: number;
  readonly entity: number;
}

const verbRows: readonly (readonly [api: number, entity: number, words: string])[] = [
  [
    1,
    1,
    'create creation add addition new insert register registration invite upload generate issue import post',
  ],
  [1, 1, 'provision publish open submit copy clone restore put'],
  [
    2,
    2,
    'read get list view describe download export search query access fetch head show lookup display inspect',
  ],
  [
    3,
    3,
    'update edit modify modified modification change set patch rename configure rotate replace reset approve',
  ],
  [
    3,
    3,
    'assign unassign attach detach grant renew sync apply merge save write alter adjust toggle lock unlock',
  ],
  [
    3,
    3,
    'rollback revert regenerate suppress silence dismiss acknowledge resolve execute propose gate',
  ],
  [
    4,
    4,
    'delete deletion remove removal destroy destruction revoke revocation purge drop terminate uninstall erase decommission',
  ],
  [3, 5, 'move transfer'],
  [1, 6, 'enroll enrol enrollment'],
  [4, 7, 'unenroll unenrol'],
  [3, 8, 'enable'],
  [3, 9, 'disable'],
  [3, 10, 'activate'],
  [3, 11, 'deactivate'],
  [3, 12, 'suspend pause'],
  [3, 13, 'resume unsuspend'],
];

/** HTTP methods. `OPTIONS` is absent, because it is not a read; `POST` and `PUT` alone mean create and update. */
const methods: Readonly<Record<string, number>> = {
  GET: 2,
  HEAD: 2,
  POST: 1,
  PUT: 3,
  PATCH: 3,
  DELETE: 4,
};

const logonWords =
  /(?:^| )(?:log ?(?:in|on)|sign ?in|authenticat(?:e|ed|ion)|logged (?:in|on)|signed in|login)s?(?: |$)/;
const logoffWords = /(?:^| )(?:log ?(?:out|off)|sign ?out|logged (?:out|off)|signed out)(?: |$)/;
const failedWords = /(?:^| )(?:fail|failed|failure|denied|unsuccessful)(?: |$)/;
const succeededWords = /(?:^| )(?:success|succeeded|successful)(?: |$)/;

/** Creates the parser with a cache of names. */
export function operationReader(): (name: string) => Operation {
  const verbs = new Map<string, Verb>(
    verbRows.flatMap(([api, entity, words]) =>
      words.split(' ').map((word) => [word, { api, entity }]),
    ),
  );
  // A name is a few words; a longer text is hostile or prose, and prose starts with its verb.
  return memo((name) => classify(name.slice(0, 200), verbs));
}

function classify(name: string, verbs: ReadonlyMap<string, Verb>): Operation {
  const method = methods[name];
  if (method !== undefined) return { api: method, entity: method, login: 0, status: 0, object: '' };
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  const place = verbIndex(name, words, verbs);
  const verb = place < 0 ? undefined : verbOf(words[place], verbs);
  const text = words.join(' ');
  return {
    api: verb?.api ?? 99,
    entity: verb?.entity ?? 99,
    login: verb === undefined ? loginOf(text) : 0,
    status: failedWords.test(text) ? 2 : succeededWords.test(text) ? 1 : 0,
    object: words.length > 1 ? objectOf(words, place) : '',
  };
}

function loginOf(text: string): number {
  if (logoffWords.test(text)) return 2;
  return logonWords.test(text) ? 1 : 0;
}

/**
 * `policy.rule.update` ends with its verb, `UpdatePolicyRule` starts with it; otherwise any word.
 */
function verbIndex(
  name: string,
  words: readonly string[],
  verbs: ReadonlyMap<string, Verb>,
): number {
  const last = words.length - 1;
  const first = /[A-Z]/.test(name) || name.includes(' ') ? 0 : last;
  for (const place of [first, last - first]) {
    if (verbOf(words[place], verbs) !== undefined) return place;
  }
  return words.findLastIndex((word) => verbOf(word, verbs) !== undefined);
}

/** The verb of a word in any form: created, creates, creating, added, dropped. */
function verbOf(word: string | undefined, verbs: ReadonlyMap<string, Verb>): Verb | undefined {
  if (word === undefined) return undefined;
  const exact = verbs.get(word);
  if (exact !== undefined) return exact;
  const stem = word.replace(/(?:ed|ing|s|d)$/, '');
  if (stem === word) return undefined;
  return verbs.get(stem) ?? verbs.get(`${stem}e`) ?? verbs.get(stem.replace(/(.)\1$/, '$1'));
}

function objectOf(words: readonly string[], place: number): string {
  const rest = words.filter((_, index) => index !== place);
  return rest.slice(0, 3).join(' ');
}
