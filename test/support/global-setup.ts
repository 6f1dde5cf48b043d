// Runs once in vitest's main process, before any test file. It creates the directory for all files of this run, and a
// small server on loopback through which test files, each its own process, request resources that exist once per run
// (`once-per-run.ts`). A resource starts at its first request and ends with the run, also when the run is killed
// (`children.ts`).
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { makeCertificates, makeUntrustedCertificates } from './certificates.ts';
import { endAllChildren } from './children.ts';
import { makeSharedKafka } from './kafka-broker.ts';
import { type Makers, oncePerRun, type RunThing } from './once-per-run.ts';
import { buildOneFile } from './one-file.ts';
import { makeSharedOpenSearch } from './opensearch.ts';
import { findRsyslog } from './rsyslog-program.ts';
import { findS3 } from './s3-program.ts';

const bundle = join(import.meta.dirname, '../../src/boot/bundle.js');

const makers: Makers = {
  kafka: makeSharedKafka,
  certificates: makeCertificates,
  untrusted_certificates: makeUntrustedCertificates,
  rsyslog: findRsyslog,
  opensearch: makeSharedOpenSearch,
  s3: findS3,
  one_file: buildOneFile,
};

function isRunThing(name: string): name is RunThing {
  return Object.hasOwn(makers, name);
}

async function answer(name: string, response: ServerResponse): Promise<void> {
  if (!isRunThing(name)) {
    response.writeHead(404).end(`nothing called ${name} exists once per run`);
    return;
  }
  try {
    const thing = await oncePerRun(name, makers[name]);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(thing));
  } catch (error) {
    response.writeHead(500).end(error instanceof Error ? error.message : String(error));
  }
}

/** Called by vitest; gives back what vitest calls when the run is over. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // The program is tested as it is started after `npm ci`.
  execFileSync(process.execPath, [bundle], { stdio: 'inherit' });
  const runDir = mkdtempSync(join(tmpdir(), 'sluice-run-'));
  process.env.SLUICE_TEST_RUN_DIR = runDir;
  const server = createServer((request, response) => {
    void answer((request.url ?? '/').slice(1), response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // Building it takes minutes where it was never built: a whole run begins with that, beside the other tests.
  const named = process.argv.slice(2).filter((word) => word !== 'run' && !word.startsWith('-'));
  if (named.length === 0) oncePerRun('s3', findS3).catch(() => undefined);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port for the test run');
  project.provide('sluiceRun', { dir: runDir, url: `http://127.0.0.1:${address.port}` });

  return async () => {
    server.closeAllConnections();
    server.close();
    await endAllChildren();
    rmSync(runDir, { recursive: true, force: true, maxRetries: 3 });
  };
}
