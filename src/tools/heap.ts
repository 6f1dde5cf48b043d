// Limits the heap growth between collections, for long-running processes. Invariant: set after the
// start and not on the command line: there, V8 would reject code compiled with other flags, and
// compile all of Node's own modules again at each start (25 ms of CPU). For the same reason the
// compile cache is flushed first.

import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';

/** Old space at most doubles between two collections; V8's default allows it to grow fourfold. */
export function boundHeapGrowth(): void {
  flushCompileCache();
  setFlagsFromString('--heap-growing-percent=100');
}
