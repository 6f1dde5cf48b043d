// A process of a state in Kafka that starts on a full disk, which has space reserved by an earlier start, on a real Apache Kafka.

import { renameSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { waitUntil } from '../support/temp.ts';
import { canMountTmpfs } from '../support/tmpfs.ts';

const events = 100;
const canMount = canMountTmpfs('a start on a full disk');

test.skipIf(!canMount)(
  'it builds its cache in the reserved space, and delivers the stored events',
  async () => {
    const receiver = await startHttpReceiver();
    await receiver.close();
    const { at, configure, start, env, prefix, uids } = await aJourney({
      ...{ events, brokers: await kafkaBrokers(), source: 'every: 1s, page_limit: 50' },
    });
    const file = configure('sluice', {
      kafka: 'session_timeout: 6s',
      sinks: `  disk: { type: file, path: ${at('out.ndjson')}, format: json }
  post: { type: http, url: "${receiver.url}", format: json, retry: { min: 100ms, max: 500ms } }`,
    });
    const first = start(file);
    await waitUntil(() => uids().length === events, { what: 'the events in the file' });
    await first.kill('SIGKILL');
    const [saved, disk] = [at('saved'), at('sluice')];
    renameSync(disk, saved);
    // The space of a cache is free again once the next start deletes it.
    for (const ending of ['', '-wal', '-shm'])
      rmSync(`${saved}/kafka-${prefix}/sluice.db${ending}`, { force: true });

    const fill = `mkdir ${disk}; mount -t tmpfs -o size=20m tmpfs ${disk}; cp -a ${saved}/. ${disk}; cat /dev/zero > ${disk}/others; exec "$@"`;
    const node = [process.execPath, 'src/boot/sluice.js', 'run', '-c', file];
    const second = startSluice(['-rm', 'sh', '-c', fill, 'sh', ...node], {
      env,
      program: 'unshare',
    });
    await second.waitForLine('"event":"running"');
    await receiver.reopen();
    const received = () => {
      const text = receiver.requests.map(({ body }) => body.toString()).join('\n');
      return new Set(text.match(/"uid":"[0-9a-f]{64}"/g)).size;
    };
    await waitUntil(() => received() === events, {
      what: () => `${events} of ${received()} events: ${second.stderr.slice(-3).join('\n')}`,
    });

    expect((await second.kill('SIGTERM')).exitCode).toBe(0);
    await receiver.close();
  },
  300_000,
);
