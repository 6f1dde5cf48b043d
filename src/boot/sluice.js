#!/usr/bin/env -S MALLOC_ARENA_MAX=1 node --min-semi-space-size=4 --max-semi-space-size=4
// The entry point `sluice`: plain JavaScript, because an older Node cannot load TypeScript and
// would report that with a stack trace. It checks the runtime, enables Node's compile cache, and
// continues with main.ts or its bundle (bundled.js). The first line keeps memory constant at full
// speed and costs no CPU: records are short-lived, so a small young generation suffices, and memory
// that threads free in one arena serves the next page. `npm run bench` measures it, with this line
// or another.

import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { mainModule } from './bundled.js';

// By default Node starts a debugger on SIGUSR1, to which any process of the user could attach, and
// ends on SIGUSR2. sluice ignores both.
for (const name of ['SIGUSR1', 'SIGUSR2']) process.on(name, () => undefined);

const nodeMajorMin = 26;

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  process.stderr.write(
    `sluice needs Node ${nodeMajorMin} or newer, and this is ${process.version}: start it with \`npx sluice\`, ` +
      'which uses the Node in node_modules (run `npm ci` first)\n',
  );
  process.exit(1);
}

// `run` has its own handlers once it runs (src/run/shutdown.ts). A signal before or after that ends
// the process as without a handler, and writes a line with the reason.
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

// Halves start-up and saves 25 MB, because types are stripped and code is compiled once. The cache
// is beside the code and not in the system's temporary directory, where other users could write; if
// it cannot be written, nothing is cached. Set in the environment, because the spool's thread reads
// only that: it would strip all of its files again.
process.env.NODE_COMPILE_CACHE ||= fileURLToPath(
  new URL('../../node_modules/.cache/sluice-compiled', import.meta.url),
);
module.enableCompileCache();

await import(mainModule());
