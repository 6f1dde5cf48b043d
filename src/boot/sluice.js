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
import { endEarly, ignoreUserSignals } from './signals.js';

ignoreUserSignals();

const nodeMajorMin = 26;

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  process.stderr.write(
    `sluice needs Node ${nodeMajorMin} or newer, and this is ${process.version}: start it with \`npx sluice\`, ` +
      'which uses the Node in node_modules (run `npm ci` first)\n',
  );
  process.exit(1);
}

endEarly();

// Halves start-up and saves 25 MB, because types are stripped and code is compiled once. The cache
// is beside the code and not in the system's temporary directory, where other users could write; if
// it cannot be written, nothing is cached. Set in the environment, because the spool's thread reads
// only that: it would strip all of its files again.
process.env.NODE_COMPILE_CACHE ||= fileURLToPath(
  new URL('../../node_modules/.cache/sluice-compiled', import.meta.url),
);
module.enableCompileCache();

await import(mainModule());
