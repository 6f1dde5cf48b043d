// A directory as the location of an archive.

import { join } from 'node:path';
import { signingKeyText } from '../../../src/archive/note.ts';
import { readArchive } from '../../archive/a-writer.ts';
import { tempDir } from '../../support/temp.ts';
import type { Receiver, ReceiverKind } from './receiver.ts';

const refusesNothing = 'it refuses no record';

/** The archive sink's receiver; every record is proven when it is requested. */
export const archiveKind: ReceiverKind = {
  type: 'archive',
  name: 'archive',
  unable: {
    shaky: 'a store that fails at every step is in test/archive/writer.test.ts',
    picky: refusesNothing,
    mixed: refusesNothing,
    mute: 'a disk answers',
    away: 'a directory that is missing is made',
  },
  async start(): Promise<Receiver> {
    const location = join(tempDir(), 'archive');
    const key = signingKeyText('archive.test', Buffer.alloc(32, 1));
    return {
      failures: () => 0,
      config: { location, signing_key: key },
      arrived: async () => (await readArchive(location)).uids,
    };
  },
};
