// Resources that exist once in a run of the tests: the shared Kafka broker, the temporary CAs, the rsyslog program,
// the one file of a release.
// Test files run in processes of their own, so they request them from vitest's main process (`global-setup.ts`), which
// creates each at the first request and returns the same one to all. Outside vitest (a benchmark, the main process
// itself) each is created in this process, once.
import { mkdtempSync, rmSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { Certificates } from './certificates.ts';
import type { KafkaAddresses } from './kafka-broker.ts';
import type { OneFile } from './one-file.ts';
import type { RsyslogProgram } from './rsyslog-program.ts';
import type { S3Program } from './s3-program.ts';

declare module 'vitest' {
  interface ProvidedContext {
    readonly sluiceRun: { readonly dir: string; readonly url: string };
  }
}

/** Everything that exists once per run, by name. All values are plain JSON. */
export interface RunThings {
  readonly kafka: KafkaAddresses;
  readonly certificates: Certificates;
  readonly untrusted_certificates: Certificates;
  readonly rsyslog: RsyslogProgram;
  readonly opensearch: { readonly url: string };
  readonly s3: S3Program;
  readonly one_file: OneFile;
}

export type RunThing = keyof RunThings;

/** How each of them is created, in the main process, at the first request. */
export type Makers = { readonly [Name in RunThing]: () => Promise<RunThings[Name]> };

const madeHere = new Map<RunThing, Promise<unknown>>();
let ownRunDir: string | undefined;

function providedRun(): { readonly dir: string; readonly url: string } | undefined {
  try {
    return inject('sluiceRun');
  } catch {
    return undefined; // vitest's way to say that this is not a test process
  }
}

/** The resource of that name, created for the first caller; later callers wait for the same one. */
export async function oncePerRun<Name extends RunThing>(
  name: Name,
  make: () => Promise<RunThings[Name]>,
): Promise<RunThings[Name]> {
  const known = madeHere.get(name);
  const asked = known ?? askOrMake(name, make);
  if (known === undefined) madeHere.set(name, asked);
  return (await asked) as RunThings[Name]; // the map holds each thing under its own name only
}

async function askOrMake<Name extends RunThing>(
  name: Name,
  make: () => Promise<RunThings[Name]>,
): Promise<RunThings[Name]> {
  const run = providedRun();
  if (run === undefined) return await make();
  const { statusCode, text } = await got(`${run.url}/${name}`);
  if (statusCode !== 200) throw new Error(text);
  return JSON.parse(text) as RunThings[Name]; // written by global-setup.ts from the same type
}

/** However long it takes: fetch gives up after five minutes, and what is built first may take longer. */
async function got(url: string): Promise<{ readonly statusCode: number; readonly text: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, resolve).on('error', reject);
  });
  const chunks: Buffer[] = await response.toArray();
  return { statusCode: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() };
}

/** The directory of this run under the system's temporary directory; removed when the run ends. */
export function runDir(): string {
  const shared = providedRun()?.dir ?? process.env.SLUICE_TEST_RUN_DIR;
  if (shared !== undefined) return shared;
  if (ownRunDir === undefined) {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-run-'));
    process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
    ownRunDir = dir;
  }
  return ownRunDir;
}
