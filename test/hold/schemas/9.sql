-- A state database as schema 9 leaves it: its tables, and something in each. Never edited, only joined by the next.
PRAGMA page_size = 16384;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
, crc INTEGER);
CREATE TABLE checkpoint (stream TEXT PRIMARY KEY, body TEXT NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
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
CREATE TABLE note (kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE request (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,      -- a stream or sink
  wish TEXT NOT NULL,      -- JSON
  at INTEGER NOT NULL,
  answer TEXT              -- JSON; NULL: not carried out yet
, progress TEXT);
CREATE TABLE page_part (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE INDEX page_part_by_first ON page_part (first);
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
, counterpart INTEGER);
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
, kept INTEGER NOT NULL DEFAULT 0);
CREATE INDEX pair_waiting_by_time ON pair_waiting (pair, at) WHERE kept = 0;
CREATE INDEX pair_waiting_kept ON pair_waiting (pair, id) WHERE kept = 1;
INSERT INTO meta (key, value)
VALUES ('end', '42');
INSERT INTO meta (key, value)
VALUES ('spool_id', '6f1c0d2e-3b4a-4c5d-8e6f-708192a3b4c5');
INSERT INTO page (first, count, bytes, held_at, stream, context, items, only_sink, kept, uids, body, crc)
VALUES (39, 2, 63, 1793491200001, 'audit', '{"source":"audit","stream":"audit","kind":"audit","fetchedAt":1793491200000}', 'data', NULL, X'0000000002000000', X'6B86B273FF34FCE19D6B804EFF5A3F5747ADA4EAA22F1D49C01E52DDB7875B4B4E07408562BEDB8B60CE05C1DECFE3AD16B72230967DE01F640B7E4729B49FCE', X'28B52FFD203FBD0100E4027B2264617461223A5B7B226964223A2231227D2C3233227D5D2C226E6578745F637572736F72223A22632D32227D0200600BCE0A13', 3545880948);
INSERT INTO page (first, count, bytes, held_at, stream, context, items, only_sink, kept, uids, body, crc)
VALUES (41, 1, 12, 1793491200002, 'audit', '{"source":"audit","stream":"audit","kind":"audit","fetchedAt":1793491200000}', '', 'siem', NULL, X'4B227777D4DD1FC61C6F884F48641D02B4D121D3FD328CB08B5531FCACDABF8A', X'5B7B226964223A2234227D5D', 866245580);
INSERT INTO checkpoint (stream, body, updated_at)
VALUES ('audit', '{"version":1,"kind":"list"}', 1793491200001);
INSERT INTO identities (block, stream, at, keys)
VALUES (7, 'audit', 1793491200001, X'6B86B273FF34FCE19D6B804EFF5A3F57010101014E07408562BEDB8B60CE05C1DECFE3AD02020202');
INSERT INTO trail (stream, at, cursor)
VALUES ('audit', 1793491200000, 'c-1');
INSERT INTO entity (stream, key, body)
VALUES ('firewall/c-1/objects', 'object/o-1', '{"kind":"object","id":"o-1"}');
INSERT INTO parent (stream, id, rank, due, state, list, checkpoint)
VALUES ('ticket_events/c-1', 't-1', 1, 1793491200005, '{"askedAt":1793491200001,"changedAt":1793491200001}', 'ticket_events/c-1:t-1', '{"version":2,"kind":"list"}');
INSERT INTO position (sink, next, mark, updated_at)
VALUES ('siem', 40, '{"bytes":9}', 1793491200003);
INSERT INTO dead_letter (id, sink, uid, offset, reason, at, context, record)
VALUES (3, 'siem', '19581e27de7ced00ff1ce50b2047e7a567c76b1cbaebabe5ef03f7c3017bb5b7', 12, 'too long', 1793491200004, '{"source":"audit","stream":"audit","kind":"audit","fetchedAt":1793491200000}', X'7B226964223A2239227D');
INSERT INTO note (kind, name, facts, at)
VALUES ('stream', 'audit', '{"state":"waiting"}', 1793491200005);
INSERT INTO request (id, name, wish, at, answer, progress) VALUES (4, 'audit', '{"what":"retry"}', 1793491200006, NULL, NULL);
INSERT INTO request (id, name, wish, at, answer, progress) VALUES (5, 'audit', '{"what":"backfill","key":"4d2c","from":1793400000000,"to":1793480000000,"isBounded":true}', 1793491200007, NULL, '{"version":1,"state":"reading","at":1793491200008,"read":9,"held":4,"untimed":0,"reachedAt":null,"share":null,"behind":0,"error":null}');
INSERT INTO set_aside (id, sink, destination, uid, offset, reason, at, context, record)
VALUES (2, 'siem', 'today', 'ab', 38, 'index today: closed', 1793491200009, '{"source":"audit","stream":"audit","kind":"audit","fetchedAt":1793491200000}', x'7b7d');
INSERT INTO pair (id, name, body) VALUES (1, 'new_audit', '{"plan":{"successor":"new_audit","predecessor":"audit","patienceMs":3600000,"overlapMs":86400000,"streams":{"old":["audit"],"new":["new_audit"]},"needsContent":false},"phase":"shadow","begunAt":1793491200000}');
INSERT INTO pair_record (id, pair, key, old, new, at, state, stream, happened, shown, company, fields)
VALUES (3, 1, x'000102030405060708090a0b0c0d0e0f', NULL, x'0001020304050607', 1793491200000, 1, 'new_audit', 1793491200000, '17', NULL, '{"id":"sabc"}');
INSERT INTO pair_waiting (id, pair, at, context, uid, record)
VALUES (3, 1, 1793491200000, '{"source":"new_audit","stream":"new_audit","kind":"audit","fetchedAt":1793491200000}', x'00', x'7b7d');
INSERT INTO pair_record (id, pair, key, old, new, at, state, stream, happened, shown, company, fields, counterpart)
VALUES (4, 1, x'0f0e0d0c0b0a09080706050403020100', x'0f0e0d0c0b0a0908', NULL, 1793491200000, 0, 'audit', 1793491200000, '18', NULL, '{"id":"sdef","name":"sghi"}', 5),
  (5, 1, x'0f0e0d0c0b0a09080706050403020100', NULL, x'08090a0b0c0d0e0f', 1793491200000, 2, 'new_audit', 1793491200000, '18', NULL, '{"id":"sdef","name":"sjkl"}', 4);
INSERT INTO pair_waiting (id, pair, at, context, uid, record, kept)
VALUES (5, 1, 1793491200000, '{"source":"new_audit","stream":"new_audit","kind":"audit","fetchedAt":1793491200000}', x'00', x'7b7d', 1);
PRAGMA user_version = 9;
