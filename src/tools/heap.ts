// How much the heap may grow until it is collected, for processes that stay. What must stay true: this is said after the
// start and not on the command line. There V8 would take what was compiled for other flags for no use, and compile all of
// Node's own modules anew at each start (25 ms of CPU). For the same reason what was compiled until now is kept first.

import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';

/** Old space at most doubles between two collections, where V8 would let it grow fourfold. */
export function boundHeapGrowth(): void {
  flushCompileCache();
  setFlagsFromString('--heap-growing-percent=100');
}
