// `node bench/archive-against.ts DIR [--events N] [--pairs N]`: what an archive costs here beside another checkout of
// sluice in DIR, such as an earlier commit. The real programs run in turn, so that a slow machine is slow for both. It
// prints the median of the ratios of pairs, less the start-up, which runs over one page measure. The calls of the store for each
// checkpoint, which are the requests of a bucket, are counted in processes of their own (archive-calls.ts).

import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { signingKeyText } from '../src/archive/note.ts';
import { median } from './cost.ts';
import { configOf } from './jobs.ts';
import { upstreamScript } from './nginx-upstream.ts';
import { inDirectory, startHelper, watched } from './program.ts';
import { pageEvents } from './work.ts';

const { values, positionals } = parseArgs({
  options: {
    events: { type: 'string', default: '100000' },
    pairs: { type: 'string', default: '5' },
  },
  allowPositionals: true,
});
const here = new URL('..', import.meta.url).pathname;
const [there = ''] = positionals;
const pages = Math.max(2, Math.round(Number(values.events) / pageEvents));
const key = signingKeyText('bench', Buffer.alloc(32, 1));
const sinks = {
  archive: `proof: { type: archive, location: ./archive, signing_key: "${key}" }`,
  'archive with a lake': `proof: { type: archive, location: ./archive, signing_key: "${key}", lake: { every: 15m } }`,
};
type Kind = keyof typeof sinks;

/** CPU microseconds of one run over so many pages. */
async function cpuUsOf(checkout: string, kind: Kind, count: number): Promise<number> {
  const upstream = await startHelper(upstreamScript(), String(count));
  try {
    return await inDirectory(async (dir) => {
      const config = join(dir, 'sluice.yaml');
      // An earlier commit may not know `ends`.
      const text = configOf(dir, upstream.port, sinks[kind]).replace('ends: never, ', '');
      writeFileSync(config, text);
      const { bin } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
      const args = [join(checkout, bin.sluice), 'run', '--once', '-c', config];
      const child = spawn(process.execPath, args, {
        cwd: dir,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let said = '';
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      const { code, cpuUs } = await watched(child);
      if (code !== 0) throw new Error(`${checkout} ended with ${code}:\n${said}`);
      return cpuUs;
    });
  } finally {
    upstream.child.kill();
  }
}

async function perEventUs(checkout: string, kind: Kind): Promise<number> {
  const start = await cpuUsOf(checkout, kind, 1);
  return ((await cpuUsOf(checkout, kind, pages)) - start) / ((pages - 1) * pageEvents);
}

for (const kind of Object.keys(sinks) as Kind[]) {
  const pairs: { readonly before: number; readonly now: number }[] = [];
  for (let i = 0; i < Number(values.pairs); i += 1) {
    const isFirst = i % 2 === 0;
    const one = await perEventUs(isFirst ? there : here, kind);
    const other = await perEventUs(isFirst ? here : there, kind);
    pairs.push(isFirst ? { before: one, now: other } : { before: other, now: one });
  }
  const ratio = median(pairs.map(({ before, now }) => now / before));
  const us = (which: 'before' | 'now') => median(pairs.map((one) => one[which])).toFixed(2);
  console.log(
    `${kind}: CPU us/event ${us('before')} there, ${us('now')} here; ratio ${ratio.toFixed(3)}`,
  );
}

for (const checkout of [there, here]) {
  const script = new URL('./archive-calls.ts', import.meta.url).pathname;
  const { stdout, stderr } = spawnSync(process.execPath, [script, checkout]);
  console.log(`${checkout === here ? 'here' : 'there'}: ${stdout}${stderr}`);
}
