// Loaded into the sluice process that is measured: measures the delay of the event loop and writes its 99th percentile,
// in milliseconds, to descriptor 3 at the end. The first second, in which code is compiled, does not count. Plain JavaScript:
// type stripping would add 14 MB and 130 ms of CPU that sluice does not use.

import { writeSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const resolutionMs = 5;
const settledMs = 1_000;
const told = 3;

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  setTimeout(() => delay.enable(), settledMs).unref();
  process.on('exit', () => {
    if (delay.count > 0) writeSync(told, (delay.percentile(99) / 1e6 - resolutionMs).toFixed(1));
  });
}
