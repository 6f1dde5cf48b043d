// The behaviour of a list over its whole life, in contrast to faults, which affect a request. The upstream documents
// leave all of this open (order, the tail, the lifetime of cursors, late records), so a client must survive every
// setting. Part of a fault script, under `lists`.

/** The behaviour of the lists whose path matches. Every default is well-behaved. */
export interface ListBehaviour {
  /** A path, with `*` for one segment and `**` for any rest. */
  readonly path: string;
  /** `mixed` adds new records at both ends. Default oldest_first. */
  readonly order?: 'oldest_first' | 'newest_first' | 'mixed';
  /** next_cursor on the last page: null, the same one repeated, or absent. */
  readonly tail?: 'null' | 'same' | 'missing' | null;
  /** Each `every`-th record appears only once `positions` newer ones exist, or after `seconds`. */
  readonly late?: {
    readonly every: number;
    readonly positions?: number;
    readonly seconds?: number;
  };
  /** Each n-th record is an exact repeat of the one before; neither has an id. */
  readonly twins_every?: number;
  /** `none`: records have no id; `integer`: ids are integers beyond 2^53. Default text. */
  readonly ids?: 'text' | 'none' | 'integer';
  /** Each page begins with the last n records of the previous page. */
  readonly repeat_last?: number;
  /** Only the newest n records are kept: offsets shift, old cursors jump forward. */
  readonly retain?: number;
  /** A cursor sees only the records that existed when its walk began. */
  readonly frozen_tail?: boolean;
  /** Each n-th page of a walk is empty but has a cursor to the next page. */
  readonly empty_every?: number;
  readonly limit_max?: number;
  /** The response to a limit above the maximum: silently fewer records, or a 422/400. Default clamp. */
  readonly limit_over?: 'clamp' | 'refuse';
  /** Offsets beyond this are rejected with 400. */
  readonly offset_max?: number;
  /** A page with this record (counted from 0) answers 451. */
  readonly blocked_index?: number;
  readonly cursor_lifetime_s?: number;
  /** The response to an unusable cursor: a status, or `ignored`, which serves the first page. */
  readonly bad_cursor?: 400 | 404 | 409 | 410 | 422 | 'ignored';
  /** The list never ends: its records repeat under new ids. */
  readonly endless?: boolean;
  /** Ids of records that this path never shows, whatever other paths show. */
  readonly hidden?: readonly (string | number)[];
  /** Records with other content at this path: `field` is a member as served here. */
  readonly differs?: readonly {
    readonly id: string | number;
    readonly field: string;
    readonly value: unknown;
  }[];
  /** Each response announces this end of the endpoint (RFC 8594); a date or an RFC 3339 time. */
  readonly sunset?: string;
  /** Each response announces this deprecation (RFC 9745). */
  readonly deprecation?: string;
  /** About each n-th change of the list has no audit event. */
  readonly unexplained_every?: number;
  /** About each n-th update of the list does not happen; its audit event does. */
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

/** The script's settings for one list: all matching entries, later ones over earlier ones. */
export function behaviourOf(lists: readonly ListBehaviour[], path: string): ListBehaviour {
  const matching = lists.filter((list) => pathMatches(list.path, path));
  return Object.assign({}, ...matching, { path });
}
