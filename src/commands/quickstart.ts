// `npm start`: the sandbox as upstream, its events on the screen, one readable line each, as JSON in a file, and as
// received in an archive whose key is created at the first start. It is an ordinary run with an ordinary config
// (config/quickstart.yaml). The sandbox's port and birth time are stored beside the state. So a second start finds the
// same upstream, grown since, resumes, and repeats nothing.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { z } from 'zod';
import { type Config, readConfig } from '../config/index.ts';
import { backlog, ExportError } from '../contracts/index.ts';
import { replacePrivateFile, takeLock } from '../hold/index.ts';
import {
  type BootTools,
  listenForShutdown,
  openTools,
  planFrom,
  type WholePlan,
} from '../run/index.ts';
import { eventTap, type Journey, type Made, openJourney } from '../run/process.ts';
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts';
import { readable } from '../terminal/index.ts';
import { agoText } from '../tools/index.ts';
import { readState } from '../watch/index.ts';
import { openLog } from '../watch/log.ts';
import { type StatusServer, watching } from '../watch/running-status.ts';
import { makeKey, publicKeyOf } from './archive/keys.ts';
import { started } from './sandbox.ts';
import { defineCommand, logLevelOption } from './shared/command.ts';

const configFile = fileURLToPath(new URL('../../config/quickstart.yaml', import.meta.url));

const world = z.strictObject({ port: z.int(), epochMs: z.int() });
type World = z.infer<typeof world>;

/** As config/quickstart.yaml has them, in the working directory. */
const outDir = 'out';
const archiveDir = `${outDir}/archive`;
const keyFile = `${outDir}/archive.key`;
const publicKeyFile = `${outDir}/archive.vkey`;

/** Few enough to be read on a screen, many enough for several pages. */
const eventsAtStart = 200;
const reportEveryMs = 5_000;
/** Outside the range of ephemeral ports, so that it is free at the next start. */
const portRequested = 18_620;

/** Runs until a signal, then drains. */
export const quickstart = defineCommand({
  name: 'quickstart',
  about: 'run a sandbox and export its events to the screen and to ./out, as `npm start` does',
  options: { logLevel: logLevelOption },
  hidden: true,
  async run({ logLevel = 'warn' }, deps) {
    const shutdown = listenForShutdown(() => deps.exit(1));
    const log = await openLog({ level: logLevel, form: 'text' });
    const report = (text: string) => deps.err(styleText('cyan', text, { stream: process.stderr }));
    const { dir } = configFor(placeholder).state;
    // Before the sandbox, whose port is in use too: the lock names the process that uses the directory.
    takeLock(dir).release();
    const sandbox = await openWorld(dir);
    const tools = openTools(log);
    const config = configFor(environmentOf(sandbox));
    const plan = screenReadable(planFrom(config, tools));
    const journey = await openJourney(plan, config.state, tools);
    try {
      for (const line of welcome(config, journey, sandbox)) report(line);
      const page = await openPage({ config, plan }, journey, tools);
      report(`status page: ${page.url}`);
      report(
        `prove that nothing is missing: npx sluice archive verify ${archiveDir} --key ${publicKeyFile}`,
      );
      report('your own config, from a few questions: npx sluice init');
      const { stop } = shutdown;
      const progress = reportProgress(journey, { tools, report, dir, stop, page: page.url });
      await journey.pipeline.run(stop, config.shutdown.timeoutMs);
      await progress;
      await page.close();
      report(`stopped: ${countsOf(journey)}. Start again to resume.`);
      return 0;
    } finally {
      await journey.close();
      await sandbox.close();
      shutdown.release();
    }
  },
});

type Environment = Readonly<Record<string, string>>;

function configFor(env: Environment): Config {
  const SANDBOX_STATE_DIR = resolve('state/quickstart');
  return readConfig(configFile, { env: { ...env, SANDBOX_STATE_DIR } });
}

/** The config names the state directory, which has the sandbox's address. */
const placeholder: Environment = {
  SANDBOX_UNIFIED_URL: 'http://127.0.0.1:1/v1',
  SANDBOX_SERVICES_URL: 'http://127.0.0.1:1',
  SANDBOX_CLIENT_ID: 'none',
  SANDBOX_CLIENT_SECRET: 'none',
  SANDBOX_ARCHIVE_KEY: 'none',
};

function environmentOf({ unifiedBaseUrl, servicesBaseUrl, credentials }: Sandbox): Environment {
  return {
    SANDBOX_UNIFIED_URL: unifiedBaseUrl,
    SANDBOX_SERVICES_URL: servicesBaseUrl,
    SANDBOX_CLIENT_ID: credentials.clientId,
    SANDBOX_CLIENT_SECRET: credentials.clientSecret,
    SANDBOX_ARCHIVE_KEY: archiveKey(),
  };
}

/** The key that signs the archive, made at the first start, with its public key beside it. */
function archiveKey(): string {
  // A start that was killed can leave it empty: nothing is signed by it.
  if ((statSync(keyFile, { throwIfNoEntry: false })?.size ?? 0) === 0) {
    mkdirSync(outDir, { recursive: true, mode: 0o750 });
    rmSync(keyFile, { force: true });
    makeKey(keyFile, 'sandbox');
  }
  const key = readFileSync(keyFile, 'utf8');
  writeFileSync(publicKeyFile, `${publicKeyOf(key)}\n`, { mode: 0o644 });
  return key;
}

/** The same upstream as last time, or a new one, remembered for the next time. */
async function openWorld(dir: string): Promise<Sandbox> {
  const file = join(dir, 'sandbox.json');
  const known = readWorld(file);
  const serve = (port: number, epochMs: number) =>
    startSandbox({ port, epochMs, seed: 1, events: eventsAtStart });
  // The port is part of the upstream that checkpoints belong to: a known sandbox keeps its port.
  if (known !== null)
    return await started(`port ${known.port}`, () => serve(known.port, known.epochMs));
  const epochMs = Date.now();
  const sandbox = await serve(portRequested, epochMs).catch(() => serve(0, epochMs));
  const born: World = { port: sandbox.port, epochMs };
  replacePrivateFile(file, `${JSON.stringify(born)}\n`);
  return sandbox;
}

function readWorld(file: string): World | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // The first start.
    return null;
  }
  try {
    return world.parse(JSON.parse(text));
  } catch (error) {
    throw new ExportError('state_damaged', `reading ${file}: a quickstart did not write it`, {
      next: 'Remove its directory and start again: everything is then read again.',
      cause: error,
    });
  }
}

/** The screen gets lines for people; the file keeps the whole events. */
function screenReadable(plan: WholePlan): WholePlan {
  return {
    ...plan,
    sinks: plan.sinks.map((sink) =>
      sink.settings.type === 'stdout'
        ? { ...sink, format: readable, formatKey: readable.name }
        : sink,
    ),
  };
}

function welcome(config: Config, { before }: Journey, { url }: Sandbox): readonly string[] {
  const held = Math.max(
    ...Object.keys(config.sinks).map((name) => {
      return backlog(before.spool, before.sinks.get(name)?.position ?? 0);
    }),
  );
  const files = Object.values(config.sinks).flatMap(({ settings }) =>
    typeof settings.path === 'string' ? [settings.path] : [],
  );
  return [
    `quickstart: reads the sandbox at ${url}; events come here and to ${files.join(', ')} (Ctrl-C stops it)`,
    before.streams.size === 0
      ? 'first start: everything is read from the beginning'
      : `resumes: delivered events are not sent again${held === 0 ? '' : `; ${held} held are sent first`}`,
  ];
}

const pagePort = 8_686;

/** The status page, on its usual port or on any that is free. */
async function openPage(made: Made, journey: Journey, tools: BootTools): Promise<StatusServer> {
  const { serveStatus } = await import('../watch/status-server.ts');
  const { clock, log } = tools;
  const look = watching({ ...journey, plan: made.plan, state: made.config.state, clock, log });
  const tap = eventTap({ ...made, spool: journey.spool, clock });
  const serve = (port: number) =>
    serveStatus({ host: '127.0.0.1', port, token: null, look, tap, clock, log });
  return await serve(pagePort).catch(() => serve(0));
}

async function reportProgress(
  journey: Journey,
  how: {
    readonly tools: BootTools;
    readonly report: (text: string) => void;
    readonly dir: string;
    readonly stop: AbortSignal;
    /** Its address, which events push off the screen. */
    readonly page: string;
  },
): Promise<void> {
  const { clock } = how.tools;
  while (!how.stop.aborted) {
    await clock.sleep(reportEveryMs, how.stop).catch(() => undefined);
    if (!how.stop.aborted)
      how.report(
        `${countsOf(journey)}; ${checkpointsOf(how.dir, clock.now())}; page: ${how.page} (Ctrl-C stops it)`,
      );
  }
}

function countsOf({ pipeline, spool }: Journey): string {
  const { streams, sinks } = pipeline.state;
  const read = streams.reduce((sum, { records }) => sum + records, 0);
  const delivered = sinks.map(({ name, delivered, position }) => {
    const held = backlog(spool.gauge, position);
    return `${name} ${delivered}${held === 0 ? '' : ` (${held} held)`}`;
  });
  return `records read ${read}; delivered: ${delivered.join(', ')}`;
}

/** The latest checkpoint of each source. They advance, so a restart is cheap. */
function checkpointsOf(dir: string, now: number): string {
  const latest = new Map<string, number>();
  for (const [name, { source, checkpoint }] of readState(dir).streams) {
    if (checkpoint === null) continue;
    const key = source ?? name;
    latest.set(key, Math.max(latest.get(key) ?? 0, checkpoint.savedAt));
  }
  const reported = Array.from(latest, ([name, at]) => `${name} ${agoText(at, now)}`);
  return `checkpoints: ${reported.join(', ')}`;
}
