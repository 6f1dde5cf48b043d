// A process that takes the lock of a state directory, says so, and holds it until it is ended.

import { takeLock } from '../../src/hold/lock.ts';

const lock = takeLock(process.argv[2] ?? '');
process.stdout.write('held\n');
// A lock without a reference is released by the garbage collector.
setInterval(() => lock, 60_000);
