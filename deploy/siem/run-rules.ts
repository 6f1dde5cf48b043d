// `npx node deploy/siem/run-rules.ts --url http://127.0.0.1:9200`: runs the detection rules against OpenSearch or Elasticsearch,
// and prints each alert once, as JSON or as a line. For a cluster without its own alerting, and to try the rules out.

import { parseArgs } from 'node:util';
import { type Ask, clusterAt, queryRules, type Scope } from './query-rules.ts';

const usage = `Usage: npx node deploy/siem/run-rules.ts --url URL [options]

  --url URL        address of the cluster
  --index PATTERN  indices to search; default: sluice-*
  --since SPAN     search events that sluice read within this time, such as 15m; "all" for every event; default: 15m
  --every SECONDS  run again after this time; default: run once
  --json           print an alert as a JSON object
The header Authorization is read from SIEM_AUTHORIZATION.
Exit code: 0 no alert, 1 an error, 3 alerts.`;

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    index: { type: 'string', default: 'sluice-*' },
    since: { type: 'string', default: '15m' },
    every: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** Runs all rules once, and prints the alerts that are new; returns their number. */
async function runOnce(ask: Ask, scope: Scope, known: Set<string>): Promise<number> {
  let count = 0;
  for (const rule of queryRules()) {
    for (const alert of await rule.run(ask, scope)) {
      if (known.has(alert.key)) continue;
      known.add(alert.key);
      count += 1;
      console.log(
        values.json ? JSON.stringify(alert) : `ALERT ${alert.level} ${alert.title} | ${alert.text}`,
      );
    }
  }
  return count;
}

async function main(): Promise<number> {
  const { url, index, since, every } = values;
  if (values.help || url === undefined) {
    console.log(usage);
    return values.help ? 0 : 64;
  }
  if (!/^(?:all|\d+[smhd])$/.test(since))
    throw new Error(`--since: expected a span such as 15m, found ${since}`);
  const seconds = every === undefined ? null : Number(every);
  if (seconds !== null && !(seconds >= 1))
    throw new Error(`--every: expected seconds, found ${every}`);
  const ask = clusterAt(url, process.env.SIEM_AUTHORIZATION);
  const scope = { index, since: since === 'all' ? null : `now-${since}` };
  const known = new Set<string>();
  for (;;) {
    const count = await runOnce(ask, scope, known);
    if (seconds === null) return count > 0 ? 3 : 0;
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(`run-rules: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
