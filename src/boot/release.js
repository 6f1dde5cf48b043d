// The entry point of the one-file release: as sluice.js, without the check of the runtime, which is part of the file.

import { endEarly, ignoreUserSignals } from './signals.js';

ignoreUserSignals();
endEarly();

await import('./main.ts');
