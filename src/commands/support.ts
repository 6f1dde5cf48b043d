// `sluice support`: a bundle for a report to the maintainers or a support team. Invariants: it has facts that sluice
// makes itself, names of the config, and ids of requests; no record, cursor, token or secret. Texts from upstream,
// receivers and records are left out by their keys (shared/support-facts.ts). The contents are listed before the file
// is written.

import { existsSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { errorText, UsageError } from '../contracts/index.ts';
import { lastLines, planToLook } from '../run/index.ts';
import { sizeText, tableLines } from '../terminal/index.ts';
import { buildText, cleanText } from '../tools/index.ts';
import { readState, statusElsewhere, streamsAndSinks } from '../watch/index.ts';
import { joinedStatus, metricsOfRunning } from '../watch/running-status.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { type PartAtWork, wholeAtWork } from './shared/parts.ts';
import { configFacts, lastErrors, ownFacts } from './shared/support-facts.ts';
import { tarOf } from './shared/tar.ts';

const linesMax = 500;

/** Writes the bundle. */
export const support = defineCommand({
  name: 'support',
  about: 'write a bundle for a bug report: no record, cursor, token or secret',
  options: {
    config: configOption,
    out: {
      value: 'file',
      about: 'the bundle, such as support.tar.gz; must not exist yet',
      needed: true,
    },
  },
  more: `The bundle has the version, the config without secrets, the status, the metrics, the last log lines and the last errors
with time, endpoint, trace_id or request_id. The files are listed first. Texts from upstream, receivers and records are
left out. Read the bundle before you send it: names of streams, sinks and companies, addresses and filters are in it.`,
  async run({ config: file, out: target }, deps) {
    const { out } = deps;
    if (existsSync(target)) throw new UsageError(`--out: ${cleanText(target, 200)} exists already`);
    const { parts, whole: atWork } = wholeAtWork(file, deps);
    const whole = atWork.config;
    const status = joinedStatus(await Promise.all(parts.map(statusOf)));
    const dirs = [
      ...new Set([whole, ...parts.map(({ config }) => config)].map((one) => one.state.dir)),
    ];
    const lines = dirs.flatMap((dir) => lastLines(dir, linesMax)).slice(-linesMax);
    const metrics = await metricsOfRunning(whole);
    const files = [
      ['version.json', 'version of sluice, Node.js and the system', json(versionFacts())],
      ['config.json', 'the config without secrets', json(configFacts(whole.kept))],
      ['status.json', 'streams, spool and sinks', json(ownFacts(status))],
      ['metrics.txt', 'the metrics of the running process', metrics ?? 'no process answers\n'],
      ['log.ndjson', 'the last log lines', lines.map((line) => `${line}\n`).join('')],
      ['errors.json', 'the last errors', json(lastErrors(status, lines))],
    ] as const;
    const bodies = files.map(([name, about, text]) => ({ name, about, body: Buffer.from(text) }));
    const rows = bodies.map(({ name, about, body }) => [name, sizeText(body.length), about]);
    for (const line of tableLines(['FILE', 'SIZE', 'CONTENT'], rows)) out(line);
    try {
      writeFileSync(target, gzipSync(tarOf(bodies, Date.now())), { mode: 0o600, flag: 'wx' });
    } catch (error) {
      throw new UsageError(`--out: ${cleanText(errorText(error), 300)}`);
    }
    out(`written: ${cleanText(target, 300)}`);
    return 0;
  },
});

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function versionFacts() {
  const { platform, arch, versions } = process;
  return { sluice: buildText(), node: versions.node, platform, arch, at: new Date().toISOString() };
}

async function statusOf({ config, refused, isElsewhere }: PartAtWork) {
  const { state } = config;
  const configured = { plan: await planToLook(config), state, refused };
  if (isElsewhere) return statusElsewhere(configured);
  return streamsAndSinks(readState(state.dir), configured);
}
