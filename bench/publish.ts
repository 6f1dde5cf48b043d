// `npx node bench/publish.ts [jobs|peers|growth|latency …]`: measures on this machine, one bench after another, and writes the
// results for docs/performance.md and the README: `bench/results/`, the charts and the tables. All by default;
// takes about an hour, on a machine without other work.

import { spawnSync } from 'node:child_process';

const benches = { jobs: 'main.ts', peers: 'peers.ts', growth: 'growth.ts', latency: 'latency.ts' };

/** Runs a script to its end, which ends this one where it fails. */
function run(script: string, ...args: readonly string[]): void {
  const path = new URL(script, import.meta.url).pathname;
  const { status } = spawnSync(process.execPath, [path, ...args], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

const requested = process.argv.slice(2);
const unknown = requested.find((name) => !(name in benches));
if (unknown !== undefined) {
  throw new Error(`there is no ${unknown} to publish: ${Object.keys(benches).join(', ')}`);
}
for (const [name, script] of Object.entries(benches)) {
  if (requested.length > 0 && !requested.includes(name)) continue;
  run(script, '--json', new URL(`results/${name}.json`, import.meta.url).pathname);
}
run('chart.ts');
run('../docs/generate.ts');
