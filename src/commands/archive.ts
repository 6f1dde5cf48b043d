// `sluice archive`: what can be done with an archive, most of it without config and state.

import { exportCommand } from './archive/export.ts';
import { hold } from './archive/hold.ts';
import { keys } from './archive/keys.ts';
import { checkProofFile, prove } from './archive/prove.ts';
import { prune } from './archive/prune.ts';
import { replay } from './archive/replay.ts';
import { search } from './archive/search.ts';
import { stats } from './archive/stats.ts';
import { verify } from './archive/verify.ts';
import type { CommandGroup } from './shared/command.ts';

/** The commands below `archive`. */
export const archive: CommandGroup = {
  name: 'archive',
  about: 'prove, check and read an archive, without config or state',
  commands: [
    verify,
    prove,
    checkProofFile,
    search,
    replay,
    exportCommand,
    stats,
    hold,
    prune,
    keys,
  ],
};
