// A ceiling of the config holds over restarts: no span of its length has more requests, however the process before ended.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lookInto } from '../../src/hold/store.ts';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

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
    const noted = () =>
      lookInto(`${dir}/state`, null, (store) => store.noted('throttle').get('used') ?? null);

    const first = startSluice(['run', '-c', file], { env });
    await waitUntil(() => asked() >= 3 && JSON.stringify(noted()).includes('"/audit/events":[['), {
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
