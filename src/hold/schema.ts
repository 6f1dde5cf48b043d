// The tables of the state database, `sluice.db` in the state directory, and the migrations of older
// ones. Operators may open it with any SQLite tool; the names are part of the contract.
// `user_version` counts migrations. Invariant: a released migration is never edited, only followed
// by another.

/** The state database's name within the state directory. */
export const databaseName = 'sluice.db';
/** SQLite's suffixes of a database's files; the file itself first. */
export const databaseSuffixes = ['', '-wal', '-shm', '-journal'];

const version1 = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- Pages as upstream sent them. Events are numbered without gaps: this page holds first .. first + count - 1.
CREATE TABLE page (
  first INTEGER PRIMARY KEY,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  held_at INTEGER NOT NULL,
  stream TEXT NOT NULL,
  context TEXT NOT NULL,   -- PageContext as JSON
  items TEXT NOT NULL,     -- path of the records within the body
  only_sink TEXT,          -- set for a dead letter that is sent again
  kept BLOB,               -- indices of the new records, 4 bytes little-endian each; NULL: all
  uids BLOB NOT NULL,      -- SHA-256 each
  body BLOB NOT NULL
);
CREATE TABLE checkpoint (stream TEXT PRIMARY KEY, body TEXT NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
-- Identities of records already held, a block per page: 16 bytes of key, 4 of content check each.
CREATE TABLE identities (block INTEGER PRIMARY KEY, stream TEXT NOT NULL, at INTEGER NOT NULL, keys BLOB NOT NULL);
CREATE INDEX identities_by_stream ON identities (stream, block);
CREATE TABLE trail (stream TEXT NOT NULL, at INTEGER NOT NULL, cursor TEXT NOT NULL);
CREATE INDEX trail_by_stream ON trail (stream, at);
CREATE TABLE entity (stream TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE TABLE position (sink TEXT PRIMARY KEY, next INTEGER NOT NULL, mark TEXT, updated_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE dead_letter (
  id INTEGER PRIMARY KEY,
  sink TEXT NOT NULL,
  uid TEXT NOT NULL,
  offset INTEGER NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL,
  context TEXT NOT NULL,
  record BLOB NOT NULL
);
CREATE INDEX dead_letter_by_sink ON dead_letter (sink, id);
-- What status shows besides positions: last error, lag, learned order.
CREATE TABLE note (kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
`;

const version2 = `
-- CRC-32 over the row's other values (held-page.ts); NULL: none was taken. Whoever changes a row by hand sets it to NULL.
ALTER TABLE page ADD COLUMN crc INTEGER;
`;

const version3 = `
-- What an operator asks of the process that runs, or of the next one: retry, rewind.
CREATE TABLE request (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,      -- a stream or sink
  wish TEXT NOT NULL,      -- JSON
  at INTEGER NOT NULL,
  answer TEXT              -- JSON; NULL: not carried out yet
);
-- The body of a large page, whose row has none: its parts in the order of their numbers.
CREATE TABLE page_part (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE INDEX page_part_by_first ON page_part (first);
`;

const version4 = `
-- JSON: how far a request has come that takes long, a backfill; NULL: nobody has said.
ALTER TABLE request ADD COLUMN progress TEXT;
`;

const version5 = `
-- Parents of a stream that reads a list or an object of each (parents).
CREATE TABLE parent (
  stream TEXT NOT NULL,
  id TEXT NOT NULL,
  rank INTEGER NOT NULL,   -- 0: asked first; 1: in rotation; 2: seldom
  due INTEGER NOT NULL,
  state TEXT,              -- JSON; NULL: not asked yet
  list TEXT,               -- what the records of its list are known by, as a stream's
  checkpoint TEXT,         -- of its list
  PRIMARY KEY (stream, id)
);
CREATE INDEX parent_by_due ON parent (stream, rank, due);
CREATE INDEX parent_by_list ON parent (list);
`;

const version6 = `
-- Events that wait for a destination of a sink that refuses all of its events (set-aside.ts).
CREATE TABLE set_aside (
  id INTEGER PRIMARY KEY,
  sink TEXT NOT NULL,
  destination TEXT NOT NULL,
  uid TEXT NOT NULL,
  offset INTEGER NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL,
  context TEXT NOT NULL,   -- PageContext as JSON
  record BLOB NOT NULL
);
CREATE UNIQUE INDEX set_aside_by_event ON set_aside (sink, offset, uid);
CREATE INDEX set_aside_by_destination ON set_aside (sink, destination, id);
`;

const version7 = `
-- A source and its successor (pairs.ts).
CREATE TABLE pair (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,  -- the successor
  body TEXT NOT NULL          -- JSON: plan, phase, counts
);
-- The records of both sides. Those that both have shown keep what names them only.
CREATE TABLE pair_record (
  id INTEGER PRIMARY KEY,
  pair INTEGER NOT NULL,
  key BLOB NOT NULL,          -- who it is on both sides
  old BLOB,                   -- 8 bytes of its uid on that side; empty: it was delivered before the pairing; NULL: not shown
  new BLOB,
  at INTEGER NOT NULL,        -- when it was stored
  state INTEGER NOT NULL,     -- 1: it waits
  stream TEXT,
  happened INTEGER,
  shown TEXT,                 -- its id, for reports
  company TEXT,
  fields TEXT                 -- JSON: digests of its folded values
);
CREATE INDEX pair_record_by_key ON pair_record (pair, key);
CREATE INDEX pair_record_alone ON pair_record (pair, at) WHERE old IS NULL OR new IS NULL;
-- The bytes of those that wait for the other side.
CREATE TABLE pair_waiting (
  id INTEGER PRIMARY KEY,
  pair INTEGER NOT NULL,
  at INTEGER NOT NULL,
  context TEXT NOT NULL,      -- PageContext as JSON
  uid BLOB NOT NULL,
  record BLOB NOT NULL
);
CREATE INDEX pair_waiting_by_time ON pair_waiting (pair, at);
`;

const version8 = `
-- Of records with one id and different contents: the row of the other side that counts as the same.
ALTER TABLE pair_record ADD COLUMN counterpart INTEGER;
-- 1: its record waits no more, but may turn out not to be its counterpart.
ALTER TABLE pair_waiting ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
DROP INDEX pair_waiting_by_time;
CREATE INDEX pair_waiting_by_time ON pair_waiting (pair, at) WHERE kept = 0;
CREATE INDEX pair_waiting_kept ON pair_waiting (pair, id) WHERE kept = 1;
`;

/** Migrations in order; the n-th raises `user_version` from n to n + 1. */
export const migrations: readonly string[] = [
  version1,
  version2,
  version3,
  version4,
  version5,
  version6,
  version7,
  version8,
];

/**
 * What a commit survives. `full`: a power cut; `normal`: the end of the process; `none`: nothing,
 * because the database is a cache.
 */
export type Sync = keyof typeof synchronous;

const synchronous = { full: 'FULL', normal: 'NORMAL', none: 'OFF' } as const;

/**
 * Run on each connection. Page size and auto-vacuum must be set before the first table, and an
 * older database keeps its own. The WAL stores whole SQLite pages: larger pages write more per
 * small commit, smaller ones need more calls per large commit.
 */
export function pragmas(sync: Sync): string {
  return `
PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = ${synchronous[sync]};
PRAGMA journal_size_limit = 67108864;
PRAGMA wal_autocheckpoint = 1000;
PRAGMA cache_size = -8192;
PRAGMA temp_store = MEMORY;
`;
}
