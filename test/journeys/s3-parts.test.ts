// The real program beside a real S3 server, killed at each step of an object that is sent in parts: each event stands in
// exactly one object, and what a kill has left of an upload never becomes one.

import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect } from 'vitest';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { type ReceivedRequest, startHttpReceiver } from '../support/http-receiver.ts';
import { testSome } from '../support/long.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../support/s3.ts';
import { askedOf } from '../support/s3-front.ts';
import { s3ServerName } from '../support/s3-program.ts';
import { patienceMs, tempDir } from '../support/temp.ts';

const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

const pageRecords = 25;
/** Records that do not compress: an object of 20 MiB of them is one of two parts. */
const records = Array.from({ length: 16 * pageRecords }, (_, i) => ({
  id: `r-${i}`,
  timestamp: new Date(Date.UTC(2026, 0, 1) + i * 1_000).toISOString(),
  note: randomBytes(48_000).toString('base64'),
}));

/** A list of them, oldest first. */
async function upstream(): Promise<string> {
  const list = createServer((request, response) => {
    const query = new URL(request.url ?? '/', 'http://x').searchParams;
    const from = Number(query.get('cursor') ?? 0);
    const next = from + pageRecords < records.length ? String(from + pageRecords) : null;
    response.setHeader('content-type', 'application/json');
    const data = records.slice(from, from + pageRecords);
    response.end(JSON.stringify({ data, next_cursor: next }));
  });
  return `http://127.0.0.1:${await listen(list)}`;
}

type Step = 'begin' | 'part 1' | 'part 2' | 'complete' | 'other';

function stepOf({ method, path }: ReceivedRequest): Step {
  if (path.includes('?uploads')) return 'begin';
  const part = /partNumber=(\d)/.exec(path)?.[1];
  if (part !== undefined) return `part ${part}` as Step;
  return method === 'POST' && path.includes('uploadId=') ? 'complete' : 'other';
}

/** Killed before the server gets the request, when it has it and has not answered, or before it arrives late. */
const kills = [
  ['begin', 'unanswered'],
  ['part 2', 'before'],
  ['complete', 'unanswered'],
  ['complete', 'late'],
] as const;

describe(`s3 sink at ${name}`, () => {
  testSome(1, ['in time', 'late'])(
    'a program killed within an upload in parts has each event in exactly one object (%s)',
    async (how) => {
      const dir = tempDir();
      const bucket = await server.bucket();
      const front = await startHttpReceiver({ keep: false });
      const config = join(dir, 'sluice.yaml');
      const { access_key_id: id, secret_access_key: secret } = server.settings.credentials;
      writeFileSync(
        config,
        `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "${await upstream()}", allow_http: true, auth: { api_key: k } }
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, order: oldest_first, page_limit: ${pageRecords} }
sinks:
  objects:
    type: s3
    bucket: ${bucket}
    endpoint: "${front.url}"
    credentials: { access_key_id: ${id}, secret_access_key: ${secret} }
    rotate: { bytes: 20MiB, every: 10m }
    retry: { min: 50ms, max: 1s }
`,
      );
      let late: (() => Promise<unknown>) | null = null;
      const passOn = async (request: ReceivedRequest) => {
        // What was in the network when its process died arrives when the next one completes.
        if (stepOf(request) === 'complete') {
          await late?.();
          late = null;
        }
        return await askedOf(server.endpoint, request);
      };
      const chosen = kills.filter(([, moment]) => (moment === 'late') === (how === 'late'));
      for (const [step, moment] of chosen) {
        const reached = Promise.withResolvers<void>();
        const killed = Promise.withResolvers<void>();
        front.answer(async (request) => {
          if (stepOf(request) !== step) return await passOn(request);
          const answer = moment === 'unanswered' ? await passOn(request) : null;
          if (moment === 'late') late = () => askedOf(server.endpoint, request);
          reached.resolve();
          await killed.promise;
          return answer ?? { answer: 'reset' };
        });
        const sluice = startSluice(['run', '-c', config]);
        const isReached = await Promise.race([
          reached.promise.then(() => true),
          sluice.exited.then(() => 'the program has ended'),
          delay(patienceMs),
        ]);
        await sluice.kill('SIGKILL');
        killed.resolve();
        expect([step, moment, isReached], sluice.stderr.slice(-20).join('\n')).toEqual([
          step,
          moment,
          true,
        ]);
      }
      front.answer(passOn);

      const { exitCode, stderr, stdout } = await runSluice(['run', '-c', config, '--once']);

      const objects = [...(await server.objects(bucket)).values()].map(({ body }) => body);
      const ids = objects.flatMap((body) =>
        gunzipSync(body)
          .toString()
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line).metadata.original_event_uid as string),
      );
      expect({ exitCode, stderr, stdout }).toMatchObject({
        exitCode: 0,
        stderr: expect.not.stringContaining('state_older'),
      });
      expect([ids.length, new Set(ids).size]).toEqual([records.length, records.length]);
      expect(objects.some(({ length }) => length > 8 * 1024 * 1024)).toBe(true);
    },
  );
});
