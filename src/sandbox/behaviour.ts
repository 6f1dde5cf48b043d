// How a list behaves over its whole life, as opposed to faults, which happen at a request. The
// upstream documents leave all of this open (order, what the tail looks like, how long a cursor
// lives, what happens to records that arrive late), so every one of these is a server that a client
// must survive. Part of a fault script, under `lists`.

/** The behaviour of the lists whose path matches. Everything left out is well-behaved. */
export interface ListBehaviour {
  /** A path, with `*` for one segment and `**` for any rest. */
  readonly path: string;
  /** `mixed` puts new records at both ends. Default oldest_first. */
  readonly order?: 'oldest_first' | 'newest_first' | 'mixed';
  /** What next_cursor is on the last page: null, the same again and again, or left out. */
  readonly tail?: 'null' | 'same' | 'missing' | null;
  /** Each `every`-th record turns up only once `positions` newer ones exist, or after `seconds`. */
  readonly late?: {
    readonly every: number;
    readonly positions?: number;
    readonly seconds?: number;
  };
  /** Each n-th record is a character-for-character repeat of the one before; neither has an id. */
  readonly twins_every?: number;
  /** `none`: records carry no id; `integer`: ids are integers beyond 2^53. Default text. */
  readonly ids?: 'text' | 'none' | 'integer';
  /** Each page begins with the last n records of the page before. */
  readonly repeat_last?: number;
  /** Only the newest n records are kept: offsets shift, old cursors jump forward. */
  readonly retain?: number;
  /** A cursor only ever sees the records that existed when its walk began. */
  readonly frozen_tail?: boolean;
  /** Each n-th page of a walk is empty but carries a cursor that leads on. */
  readonly empty_every?: number;
  readonly limit_max?: number;
  /** What a limit above the maximum meets: silently less, or a 422/400. Default clamp. */
  readonly limit_over?: 'clamp' | 'refuse';
  /** Offsets beyond this are refused with 400. */
  readonly offset_max?: number;
  /** A page that holds this record (counted from 0) answers 451. */
  readonly blocked_index?: number;
  readonly cursor_lifetime_s?: number;
  /** What an unusable cursor meets: a status, or `ignored`, which serves the first page. */
  readonly bad_cursor?: 400 | 404 | 409 | 410 | 422 | 'ignored';
  /** The list never ends: its records come again and again under new ids. */
  readonly endless?: boolean;
  /** Ids of records that are never shown at this path, whatever other paths show. */
  readonly hidden?: readonly (string | number)[];
  /** Records that say something else at this path: `field` is a member as it is served here. */
  readonly differs?: readonly {
    readonly id: string | number;
    readonly field: string;
    readonly value: unknown;
  }[];
  /** Each answer announces this end of the endpoint (RFC 8594); a date or an RFC 3339 time. */
  readonly sunset?: string;
  /** Each answer announces this deprecation (RFC 9745). */
  readonly deprecation?: string;
  /** Of the list's changes about each n-th has no audit event. */
  readonly unexplained_every?: number;
  /** Of the list's updates about each n-th does not happen; its audit event does. */
  readonly unseen_every?: number;
}

/** Whether a path matches a pattern: `*` is one segment, `**` any number of characters. */
export function pathMatches(pattern: string, path: string): boolean {
  const source = pattern
    .split(/(\*\*|\*)/)
    .map((part) => (part === '**' ? '.*' : part === '*' ? '[^/]*' : RegExp.escape(part)))
    .join('');
  return new RegExp(`^${source}$`, 's').test(path);
}

/** What the script says of one list: all matching entries, later ones over earlier ones. */
export function behaviourOf(lists: readonly ListBehaviour[], path: string): ListBehaviour {
  const matching = lists.filter((list) => pathMatches(list.path, path));
  return Object.assign({}, ...matching, { path });
}
