#!/usr/bin/env -S MALLOC_ARENA_MAX=1 node --min-semi-space-size=4 --max-semi-space-size=4
// What is started as `sluice`: plain JavaScript, since an older Node cannot load TypeScript and would say so with a stack
// trace. It makes sure of the runtime, lets Node keep what it compiles, and hands over to main.ts, or to
// what was made of it (bundled.js). The first line keeps memory flat at full speed and costs no CPU: records die young, so
// little room for them is enough, and what threads free in one arena serves the next page. `npm run bench` shows it,
// with this line or another.

import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { mainModule } from './bundled.js';

// Node starts a debugger on SIGUSR1, which any user's process could then attach to, and ends on SIGUSR2. Neither means
// anything here.
for (const name of ['SIGUSR1', 'SIGUSR2']) process.on(name, () => undefined);

const nodeMajorMin = 26;

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  process.stderr.write(
    `sluice needs Node ${nodeMajorMin} or newer, and this is ${process.version}: start it with \`npx sluice\`, ` +
      'which uses the Node in node_modules (run `npm ci` first)\n',
  );
  process.exit(1);
}

// `run` has its own handlers once it runs (src/run/shutdown.ts). A signal before or after that ends the process as it would
// without a handler, and leaves a line with the reason.
if (process.argv[2] === 'run') {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    const early = () => {
      if (process.listenerCount(signal) > 1) return;
      process.stderr.write(`sluice ends: stopped by ${signal}; no event is lost\n`);
      process.off(signal, early);
      process.kill(process.pid, signal);
    };
    process.on(signal, early);
  }
}

// Halves start-up and saves 25 MB, since types are stripped and code is compiled once. Beside the code and not in the
// system's temporary directory, where others could write; where it cannot be written nothing is cached. Named in the
// environment, since the spool's thread looks nowhere else: it would strip every one of its files anew.
process.env.NODE_COMPILE_CACHE ||= fileURLToPath(
  new URL('../../node_modules/.cache/sluice-compiled', import.meta.url),
);
module.enableCompileCache();

await import(mainModule());
