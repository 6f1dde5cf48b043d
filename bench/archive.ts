// `node bench/archive.ts [--events N] [--rounds N]`: the cost of an archive beside the `file` sink on the same pages,
// of its lake beyond normalising, the speed of its verification, and the cost of `search` with and without proofs. The real program runs as `run --once` with each in
// turn, so that a slow phase of the machine affects all; results are medians of the rounds. CPU is user + system time
// of all threads, minus the start-up measured by runs over one page. The bound of both is measured separately, without
// objects or a log.

import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { parseSigningKey, signingKeyText } from '../src/archive/note.ts';
import { keptRecords, recordsRoot } from '../src/archive/records.ts';
import { compileNormaliser } from '../src/normalise/normalise.ts';
import { cutRecords } from '../src/tools/record-list.ts';
import { median } from './cost.ts';
import { perEvent } from './floor.ts';
import { configOf } from './jobs.ts';
import { upstreamScript } from './nginx-upstream.ts';
import { inDirectory, main, runOnce, startHelper, watched } from './program.ts';
import { pageBody, pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '3' },
  },
});
const pages = Math.max(2, Math.round(Number(values.events) / pageEvents));
const signingKey = signingKeyText('bench', Buffer.alloc(32, 1));
const { vkey } = parseSigningKey(signingKey).verifier;

const disk =
  'disk: { type: file, path: ./events.ndjson, format: { type: json, schema: original } }';
const proof = `proof: { type: archive, location: ./archive, signing_key: "${signingKey}"`;
const sinks = {
  file: disk,
  'file, archived': `${disk}\n  ${proof} }`,
  'file, archived with a lake': `${disk}\n  ${proof}, lake: { every: 15m } }`,
};
type Kind = keyof typeof sinks;

interface Verified {
  readonly megabytes: number;
  readonly cpuSeconds: number;
  readonly rssMegabytes: number;
}

/** CPU microseconds of a run over so many pages, and of the verification of what it has archived. */
async function measured(kind: Kind, count: number) {
  const upstream = await startHelper(upstreamScript(), String(count));
  try {
    return await inDirectory(async (dir) => {
      const { cpuUs, rssPeakBytes } = await runOnce(configOf(dir, upstream.port, sinks[kind]), dir);
      return {
        cpuUs,
        rssPeakBytes,
        verified: kind === 'file' ? null : await verified(join(dir, 'archive')),
        searched: kind === 'file' ? null : await searched(join(dir, 'archive'), kind),
      };
    });
  } finally {
    upstream.child.kill();
  }
}

async function verified(archive: string): Promise<Verified> {
  const args = ['archive', 'verify', archive, '--key', vkey, '--json'];
  const child = spawn(main, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let reported = '';
  child.stdout.on('data', (chunk: Buffer) => {
    reported += chunk.toString();
  });
  const { code, cpuUs, rssPeakBytes } = await watched(child);
  if (code !== 0) throw new Error(`verify ended with ${code}`);
  const { body_bytes: bytes } = JSON.parse(reported) as { readonly body_bytes: number };
  return { megabytes: bytes / 1e6, cpuSeconds: cpuUs / 1e6, rssMegabytes: rssPeakBytes / 1e6 };
}

/** CPU microseconds of a search for everything, with the proofs of `--key` and without. */
interface Searched {
  readonly proven: number;
  readonly unproven: number;
}

/** Searches the lake, or the pages of an archive without one. */
async function searched(archive: string, kind: Kind): Promise<Searched> {
  const raw = kind === 'file, archived' ? ['--raw'] : [];
  const cpuOf = async (...key: readonly string[]) => {
    const args = ['archive', 'search', archive, ...raw, ...key];
    const { code, cpuUs } = await watched(
      spawn(main, args, { stdio: ['ignore', 'ignore', 'ignore'] }),
    );
    if (code !== 0) throw new Error(`search ended with ${code}`);
    return cpuUs;
  };
  const [proven, unproven]: [number[], number[]] = [[], []];
  for (let round = 0; round < 3; round += 1) {
    proven.push(await cpuOf('--key', vkey));
    unproven.push(await cpuOf());
  }
  return { proven: median(proven), unproven: median(unproven) };
}

const kinds = Object.keys(sinks) as Kind[];
const cpu = new Map<Kind, number[]>(kinds.map((kind) => [kind, []]));
const rss = new Map<Kind, number[]>(kinds.map((kind) => [kind, []]));
const checks = new Map<Kind, { whole: Verified; start: Verified }[]>(
  kinds.map((kind) => [kind, []]),
);
const searches = new Map<Kind, { whole: Searched; start: Searched }[]>(
  kinds.map((kind) => [kind, []]),
);
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const kind of kinds) {
    const [start, whole] = [await measured(kind, 1), await measured(kind, pages)];
    cpu.get(kind)?.push((whole.cpuUs - start.cpuUs) / ((pages - 1) * pageEvents));
    rss.get(kind)?.push(whole.rssPeakBytes / 1e6);
    if (whole.verified !== null && start.verified !== null)
      checks.get(kind)?.push({ whole: whole.verified, start: start.verified });
    if (whole.searched !== null && start.searched !== null)
      searches.get(kind)?.push({ whole: whole.searched, start: start.searched });
  }
}
const us = (kind: Kind) => median(cpu.get(kind) ?? []);
const rate = ({ whole, start }: { whole: Verified; start: Verified }) =>
  (whole.megabytes - start.megabytes) / (whole.cpuSeconds - start.cpuSeconds);

console.table(
  kinds.map((kind, i) => {
    const found = checks.get(kind) ?? [];
    const before = kinds[i - 1];
    return {
      sinks: kind,
      'CPU us/event': Number(us(kind).toFixed(1)),
      'RSS peak MB': Math.round(median(rss.get(kind) ?? [])),
      'more than before': before && Number((us(kind) - us(before)).toFixed(1)),
      'verify MB/CPU-second': found.length === 0 ? undefined : Math.round(median(found.map(rate))),
      'verify RSS peak MB':
        found.length === 0
          ? undefined
          : Math.round(median(found.map(({ whole }) => whole.rssMegabytes))),
    };
  }),
);
const searchUs = (kind: Kind, which: keyof Searched) => {
  const found = searches.get(kind) ?? [];
  const each = found.map(({ whole, start }) => whole[which] - start[which]);
  return Number((median(each) / ((pages - 1) * pageEvents)).toFixed(1));
};
console.table(
  kinds
    .filter((kind) => kind !== 'file')
    .map((kind) => ({
      sinks: kind,
      search: kind === 'file, archived' ? 'the pages (--raw)' : 'the lake',
      'CPU us/event with --key': searchUs(kind, 'proven'),
      'without --key': searchUs(kind, 'unproven'),
    })),
);
const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
const normaliseUs = perEvent((events) => {
  for (const event of events) void event.ocsf;
}, normalise);

const level = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };
const samples = Array.from({ length: 8 }, (_, page) => {
  const body = pageBody(page, false);
  const records = keptRecords({ body, items: 'data', kept: null });
  return { body, records, frame: zstdCompressSync(body, level) };
});

const sampleBytes = samples.reduce((sum, { body }) => sum + body.length, 0);

/** Megabytes of bodies that go through one step in a CPU second. */
function rateOf(step: (page: (typeof samples)[number]) => unknown): number {
  const [warmUp, rounds] = [5, 25];
  let begun = process.cpuUsage();
  for (let round = 0; round < warmUp + rounds; round += 1) {
    if (round === warmUp) begun = process.cpuUsage();
    for (const page of samples) step(page);
  }
  const { user, system } = process.cpuUsage(begun);
  return Math.round((sampleBytes * rounds) / (user + system));
}

console.table(
  Object.entries({
    'zstd, compressing': rateOf(({ body }) => zstdCompressSync(body, level)),
    'zstd, decompressing': rateOf(({ body, frame }) =>
      zstdDecompressSync(frame, { chunkSize: body.length + 1 }),
    ),
    'SHA-256 of the body': rateOf(({ body }) => hash('sha256', body, 'hex')),
    'where its records stand': rateOf(({ body }) => cutRecords(body, 'data')),
    'root of their tree': rateOf(({ records }) => recordsRoot(records)),
  }).map(([step, rate]) => ({
    step,
    'MB/CPU-second': rate,
    'us/event': Number((sampleBytes / samples.length / pageEvents / rate).toFixed(2)),
  })),
);
console.log(
  `${pages * pageEvents} events; to parse and normalise one, which the lake needs and no other sink here does: ${normaliseUs.toFixed(1)} us`,
);
