// A ceiling of the config holds over restarts and reloads: no span of its length has more requests, however the process
// before ended.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lookInto } from '../../src/hold/store.ts';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

/** The number of requests in the note: each has a group of its own. */
function notedIn(dir: string): number {
  const used = lookInto(`${dir}/state`, null, (store) => store.noted('throttle').get('used'));
  return JSON.stringify(used ?? null).match(/,1\]/g)?.length ?? 0;
}

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after %s no more is requested than the rest of the ceiling',
  async (signal) => {
    const { sandbox, upstreams, env } = await anEdge(300);
    const dir = tempDir();
    const file = join(dir, 'sluice.yaml');
    writeFileSync(
      file,
      `state: { dir: ${dir}/state }
${upstreams}
    throttle: [{ path: /audit/events, requests: 3, per: 1h }]
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 10 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
status: { listen: "127.0.0.1:0" }
`,
    );
    const asked = () => sandbox.control.requests()['/v1/audit/events']?.requests ?? 0;

    const first = startSluice(['run', '-c', file], { env });
    await waitUntil(() => asked() >= 3 && notedIn(dir) === 3, {
      what: 'all that may be asked for',
    });
    await first.kill(signal);
    const second = startSluice(['run', '-c', file], { env });
    const { url } = JSON.parse(await second.waitForLine('"status page"')) as {
      readonly url: string;
    };
    // It waits for a request, and has had its turn if it has any.
    const waits = async () =>
      /^sluice_upstream_wait_seconds\{.*\} [1-9]/m.test(
        await (await fetch(`${url}/metrics`)).text(),
      );
    await waitUntil(waits, { what: 'a stream that waits for its turn' });
    const third = await second.kill('SIGTERM');

    expect(third.exitCode).toBe(0);
    expect(asked()).toBe(3);
  },
);

test('a wait that upstream requests holds after SIGKILL', async () => {
  const { sandbox, upstreams, env } = await anEdge(20);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state: { dir: ${dir}/state }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
status: { listen: "127.0.0.1:0" }
`,
  );
  const asked = () => sandbox.control.requests()['/v1/audit/events']?.requests ?? 0;
  const fault = { kind: 'status', status: 429, retry_after: 3_600 } as const;
  sandbox.control.setFaults({ rules: [{ path: '/v1/audit/events', fault }] });
  const used = () => lookInto(`${dir}/state`, null, (store) => store.noted('throttle').get('used'));

  const first = startSluice(['run', '-c', file], { env });
  await waitUntil(() => /"waits":\{"\w+":\{"/.test(JSON.stringify(used() ?? null)), {
    what: 'the stored wait',
  });
  await first.kill('SIGKILL');
  const second = startSluice(['run', '-c', file], { env });
  const { url } = JSON.parse(await second.waitForLine('"status page"')) as { readonly url: string };
  const waits = async () =>
    /^sluice_upstream_wait_seconds\{.*\} 3[56]\d\d/m.test(
      await (await fetch(`${url}/metrics`)).text(),
    );
  await waitUntil(waits, { what: 'a stream that waits for its turn' });
  await second.kill('SIGTERM');

  expect(asked()).toBe(1);
});

test('a reload leaves the requests already sent counted, now and after SIGKILL', async () => {
  const { sandbox, upstreams, env } = await anEdge(300);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  const write = (requests: number) =>
    writeFileSync(
      file,
      `state: { dir: ${dir}/state }
${upstreams}
    throttle: [{ path: /audit/events, requests: ${requests}, per: 1h }]
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 10 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
`,
    );
  const asked = () => sandbox.control.requests()['/v1/audit/events']?.requests ?? 0;
  write(2);
  const first = startSluice(['run', '-c', file], { env });
  await waitUntil(() => asked() >= 2, { what: 'all that may be asked for' });

  write(5);
  await waitUntil(() => asked() >= 5, { what: 'all of the higher ceiling' });
  await waitUntil(() => notedIn(dir) === 5, { what: 'its note' });
  await first.kill('SIGKILL');
  write(6);
  const second = startSluice(['run', '-c', file], { env });
  await waitUntil(() => asked() >= 6, { what: 'the rest' });
  write(4);
  await second.waitForLine('"config_reloaded"');
  await second.kill('SIGTERM');

  expect(asked()).toBe(6);
});
