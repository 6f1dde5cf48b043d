// A process that appends one page after the other, its sink two pages behind, and prints each number once it is
// durable, until it is killed. No caller waits for the sink's positions: each is sent with the next append.

import { openSpool } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';

const dir = process.argv[2] ?? '';
const spool = await openSpool({
  dir,
  sync: 'full',
  keepMs: 0,
  sinks: ['a'],
  bytesMax: 1e9,
});
for (let n = spool.gauge.end + 1; ; n += 1) {
  await spool.append(anAppend({ ids: [String(n)], pad: (n * 7_919) % 40_000 }));
  spool.acknowledge('a', { position: Math.max(0, n - 2) }).catch(() => undefined);
  process.stdout.write(`${n}\n`);
}
