// The entry point of the one-file release: as sluice.js, without the check of the runtime, which is part of the file.

import module from 'node:module';
import { compileCacheDir } from './compile-cache.ts';
import { endEarly, ignoreUserSignals } from './signals.js';

ignoreUserSignals();
endEarly();

// The file itself cannot hold compiled code (Node's useCodeCache excludes useVfs). Node reads the variable itself if it is set.
if (process.env.NODE_COMPILE_CACHE === undefined) {
  const dir = compileCacheDir(process.env);
  if (dir !== null) module.enableCompileCache(dir);
}

await import('./main.ts');
