// The whole path with the state in Kafka, on a real Apache Kafka: upstream, log, sink. The program is killed again and again
// while it commits pages, and each time another machine with an empty state directory resumes.

import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { runSluice } from '../support/cli.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { waitUntil } from '../support/temp.ts';

const events = 6_000;
const kills = 3;

test('killed while it commits, with an empty state directory each time: every event once', async () => {
  const { configure, env, start, once, uids } = await aJourney({
    ...{ events, brokers: await kafkaBrokers(), kafka: 'instance: sluice-0' },
    source: 'every: 1s, page_limit: 100',
  });

  for (let run = 0; run < kills; run += 1) {
    const until = ((run + 1) * events) / (kills + 2);
    const sluice = start(configure(`machine-${run}`));
    await waitUntil(() => !sluice.running || uids().length >= until, {
      what: () => `${until} events of ${uids().length}: ${sluice.stderr.slice(-5).join('\n')}`,
    });
    expect(sluice.running, sluice.stderr.join('\n')).toBe(true);
    await sluice.kill('SIGKILL');
  }
  const last = configure(`machine-${kills}`);
  const ended = await once(last);

  expect(ended.exitCode, ended.stderr).toBe(0);
  expect(new Set(uids()).size).toBe(events);
  expect(uids().length).toBe(events);
  const status = await runSluice(['status', '-c', last, '--json'], { env });
  expect(status.exitCode).toBe(0);
});
