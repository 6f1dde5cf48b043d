// The old API of a pair dies, or is away and returns, while two processes share the state in Kafka, and the one that works on the
// pair is killed: each record is there once.

import { describe, expect, test } from 'vitest';
import { Stage } from '../succession-kills/stage.ts';
import { runHere } from '../support/cli.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import type { Death } from '../support/moving/upstreams.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

async function aStage(succeeds: object) {
  const stage = await Stage.open({
    ...{ state: 'kafka', brokers: await kafkaBrokers(), dir: tempDir(), succeeds, pageMax: 20 },
  });
  const missing = () => stage.pair.count(stage.lines.join('\n')).lost;
  const complete = () =>
    waitUntil(() => missing().length === 0, {
      what: () =>
        `all records; ${missing().length} are missing: ${stage.logs.slice(-8).join('\n')}`,
      everyMs: 100,
    });
  /** By receiver, how many records it lacks and repeats. */
  const wrong = async () =>
    [...(await stage.delivered())].map(([name, { lost, repeated }]) => ({
      ...{ name, lost: lost.length, repeated: name === 'syslog' ? 0 : repeated.length },
    }));
  stage.startAll();
  return { stage, pair: stage.pair, complete, wrong };
}

const whole = ['file', 'syslog', 'kafkajs', 'platformatic'].map((name) => ({
  ...{ name, lost: 0, repeated: 0 },
}));

/** A connection that is refused is in the test below, and for good in oracle.test.ts on SQLite. */
const deaths: readonly Death[] = process.env.SLUICE_TEST_LONG === '1' ? [410, 'refused'] : [410];

describe.each(deaths)('an old API that dies with %s', (how) => {
  test('for good, in shadow: the other process takes over, and a cutover is forced from elsewhere', async () => {
    const { stage, pair, complete, wrong } = await aStage({ patience: '2s', overlap: '2h' });
    pair.addMany(30);
    await complete();
    pair.addMany(10);
    await pair.die('old', how);
    pair.addMany(40);
    await complete();
    // Records wait, and the process that stored them is killed.
    pair.addMany(20);
    const { requests } = stage;
    await waitUntil(() => stage.requests > requests + 4, { what: 'requests', everyMs: 5 });
    await stage.killOwner('whole');
    await complete();

    const refused = await stage.turn('cutover');
    const forced = await stage.turn('cutover', '--force');
    const back = await stage.turn('rollback');
    stage.startAll();
    pair.addMany(20);
    await complete();
    await stage.killOwner('shard');
    pair.only('new').addMany(5);
    await complete();
    await stage.end();

    expect([refused.exitCode, forced.exitCode, back.exitCode]).toEqual([1, 0, 1]);
    expect(refused.stderr).toContain('old_audit');
    expect(await wrong()).toEqual(whole);
  }, 600_000);
});

test('an old API that is away for many times the patience and returns', {
  tags: ['long'],
}, async () => {
  const { stage, pair, complete, wrong } = await aStage({ patience: '500ms', overlap: '2h' });
  for (const how of ['reset', 'refused'] satisfies Death[]) {
    pair.addMany(20);
    await complete();
    await pair.die('old', how);
    pair.addMany(20);
    await complete();
    await stage.killOwner('whole');
    stage.startAll();
    pair.addMany(20);
    await complete();
    await pair.revive('old');
    await runHere(['retry', '-c', stage.command, 'old_audit']);
  }
  const last = pair.addMany(10);
  await complete();
  await waitUntil(() => last.every(({ mark }) => pair.served('old').has(mark)), {
    what: 'the old side to be read to its end',
  });
  await waitUntil(async () => (await stage.report()).waiting === 0, { what: 'none to wait' });
  await stage.end();

  expect(await wrong()).toEqual(whole);
});
