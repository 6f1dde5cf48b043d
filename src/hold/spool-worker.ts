// A thread that owns state databases, so that an fsync or a WAL checkpoint never blocks the event loop. One thread serves the
// spools that are sent to it, each by a port of its own: a process with many shards needs no thread per shard
// (spool-threads.ts). Invariant: a spool that fails ends alone; the others of the thread continue.

import { parentPort } from 'node:worker_threads';
import { invariant } from '../contracts/index.ts';
import type { SpoolOpening } from './spool-operations.ts';
import { SpoolServer } from './spool-server.ts';

invariant(parentPort !== null, 'the spool worker runs in a worker thread');
parentPort.on('message', ({ settings, port }: SpoolOpening) => {
  SpoolServer.open(settings, port);
});
