// A process that takes the lock of a state directory, says so, and holds it until it is ended.

import { takeLock } from '../../src/hold/lock.ts';

const lock = takeLock(process.argv[2] ?? '');
process.stdout.write('held\n');
// A lock that nobody keeps is let go with the garbage.
setInterval(() => lock, 60_000);
