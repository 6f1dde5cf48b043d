// A process that writes one object after the other into a directory, counts them in a last one that it replaces, and says
// each number once both are durable, until it is killed or fails. Started by directory.test.ts, never imported.

import { ExportError } from '../../src/contracts/errors.ts';
import { openDirectory } from '../../src/objects/directory.ts';

const [dir = '', begun = '0'] = process.argv.slice(2);
const store = openDirectory(dir);
const body = Buffer.alloc(100_000, 'x');
try {
  for (let count = Number(begun) + 1; ; count++) {
    await store.create(`objects/${String(count).padStart(6, '0')}`, [body]);
    for (let written = false; !written; ) {
      // Null where the process before this one had begun it: read again, as everybody must.
      const tag = (await store.facts('counter'))?.tag ?? null;
      written = (await store.replace('counter', [Buffer.from(`{"count":${count}}`)], tag)) !== null;
    }
    process.stdout.write(`${count}\n`);
  }
} catch (error) {
  if (!(error instanceof ExportError)) throw error;
  process.stdout.write(`${error.code} ${error.next}\n`);
}
