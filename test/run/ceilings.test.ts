// A ceiling of the config holds over restarts and reloads: no span of its length has more requests, however the process
// before ended. So does a wait that upstream requests.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lookInto } from '../../src/hold/store.ts';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

/** Writes a config whose upstream ends with these lines; `put` writes another one, `asked` counts requests. */
async function anAudit(ofUpstream = '', events = 300) {
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  const put = (lines: string) =>
    writeFileSync(
      file,
      `state: { dir: ${dir}/state }
${upstreams}
${lines}
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 10 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
status: { listen: "127.0.0.1:0" }
`,
    );
  put(ofUpstream);
  const asked = () => sandbox.control.requests()['/v1/audit/events']?.requests ?? 0;
  return { sandbox, dir, put, asked, start: () => startSluice(['run', '-c', file], { env }) };
}

/** Waits until the stream waits for so many seconds: it has had its turn if it has any. */
async function waitsFor(sluice: RunningSluice, seconds: RegExp): Promise<void> {
  const { url } = JSON.parse(await sluice.waitForLine('"status page"')) as { readonly url: string };
  const wait = new RegExp(`^sluice_upstream_wait_seconds\\{.*\\} ${seconds.source}`, 'm');
  const waits = async () => wait.test(await (await fetch(`${url}/metrics`)).text());
  await waitUntil(waits, { what: 'a stream that waits for its turn' });
}

const ceiling = (requests: number) =>
  `    throttle: [{ path: /audit/events, requests: ${requests}, per: 1h }]`;

/** The note in a state directory. */
function noteIn(dir: string): string {
  const used = lookInto(`${dir}/state`, null, (store) => store.noted('throttle').get('used'));
  return JSON.stringify(used ?? null);
}

/** The number of requests in the note: each has a group of its own. */
function notedIn(dir: string): number {
  return noteIn(dir).match(/,1\]/g)?.length ?? 0;
}

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after %s no more is requested than the rest of the ceiling',
  async (signal) => {
    const { dir, asked, start } = await anAudit(ceiling(3));

    const first = start();
    await waitUntil(() => asked() >= 3 && notedIn(dir) === 3, {
      what: 'all that may be asked for',
    });
    await first.kill(signal);
    const second = start();
    await waitsFor(second, /[1-9]/);
    const third = await second.kill('SIGTERM');

    expect(third.exitCode).toBe(0);
    expect(asked()).toBe(3);
  },
);

test('a wait that upstream requests holds after SIGKILL', async () => {
  const { sandbox, dir, asked, start } = await anAudit('', 20);
  const fault = { kind: 'status', status: 429, retry_after: 3_600 } as const;
  sandbox.control.setFaults({ rules: [{ path: '/v1/audit/events', fault }] });

  const first = start();
  await waitUntil(() => /"waits":\{"\w+":\{"/.test(noteIn(dir)), { what: 'the stored wait' });
  await first.kill('SIGKILL');
  const second = start();
  await waitsFor(second, /3[56]\d\d/);
  await second.kill('SIGTERM');

  expect(asked()).toBe(1);
});

test('a reload leaves the requests already sent counted, now and after SIGKILL', async () => {
  const { dir, put, asked, start } = await anAudit(ceiling(2));
  const first = start();
  await waitUntil(() => asked() >= 2, { what: 'all that may be asked for' });

  put(ceiling(5));
  await waitUntil(() => asked() >= 5, { what: 'all of the higher ceiling' });
  await waitUntil(() => notedIn(dir) === 5, { what: 'its note' });
  await first.kill('SIGKILL');
  put(ceiling(6));
  const second = start();
  await waitUntil(() => asked() >= 6, { what: 'the rest' });
  put(ceiling(4));
  await second.waitForLine('"config_reloaded"');
  await second.kill('SIGTERM');

  expect(asked()).toBe(6);
});
