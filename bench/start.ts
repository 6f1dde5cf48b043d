// `npx node bench/start.ts --file FILE [--runs 15]`: CPU of a start of the one file of a release beside the checkout, in turn,
// for `--version` and `check`: with a cache of compiled code, and for the file also without. CPU is user + system time of all
// threads. `check` looks at all processes of the machine, so run it where there are few: `unshare --pid --fork --mount-proc`.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from './cost.ts';
import { inDirectory, main } from './program.ts';

const { values } = parseArgs({
  options: { file: { type: 'string' }, runs: { type: 'string', default: '15' } },
});
if (values.file === undefined) throw new Error('--file is missing: name the one file of a release');
const file = resolve(values.file);

const config = {
  upstreams: {
    edge: {
      ...{ api: 'unified', base_url: 'https://api.example.com/v1' },
      auth: { client_id: 'a', client_secret: 'b', scope: 'events:read' },
    },
  },
  sources: { audit: { type: 'audit_events', upstream: 'edge', every: '30s' } },
  sinks: { siem: { type: 'syslog', address: 'tls://siem.example:6514', format: 'cef' } },
};

/** CPU milliseconds of a run, as bash counts them. */
function cpuMs(program: string, args: readonly string[], env: NodeJS.ProcessEnv): number {
  const script = 'TIMEFORMAT="%3U %3S"; time "$@" >/dev/null 2>&1';
  const { stderr } = spawnSync('bash', ['-c', script, 'bash', program, ...args], {
    encoding: 'utf8',
    env: { ...process.env, MALLOC_ARENA_MAX: '1', ...env },
  });
  const [user = Number.NaN, system = Number.NaN] = stderr.trim().split(' ').map(Number);
  return (user + system) * 1_000;
}

await inDirectory(async (dir) => {
  const yaml = join(dir, 'sluice.yaml');
  writeFileSync(yaml, JSON.stringify(config));
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
  const starts = [
    { name: 'checkout', program: main, env: { PATH } },
    { name: 'file', program: file, env: { HOME: dir } },
    { name: 'file, no cache', program: file, env: { HOME: '', XDG_CACHE_HOME: '' } },
  ];
  for (const [command, args] of [
    ['--version', ['--version']],
    ['check', ['check', '-c', yaml]],
  ] as const) {
    const found = starts.map(() => [] as number[]);
    // The first run fills the caches.
    for (let run = 0; run <= Number(values.runs); run += 1) {
      starts.forEach(({ program, env }, i) => {
        const ms = cpuMs(program, args, env);
        if (run > 0) found[i]?.push(ms);
      });
    }
    const rows = starts.map(({ name }, i) => [name, Math.round(median(found[i] ?? []))]);
    process.stdout.write(`${command}, CPU ms: ${rows.map((row) => row.join(' ')).join('; ')}\n`);
  }
});
