// A receiver that refuses everything for a while makes no dead letter: the real program, an http receiver that answers 400
// after a first delivery, and a process that is killed meanwhile.

import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { type HttpAnswer, type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { waitUntil } from '../support/temp.ts';

const events = 200;
const ok: HttpAnswer = { answer: 'reply', status: 200 };
const bad: HttpAnswer = { answer: 'reply', status: 400, body: 'the index is read-only' };

/** The sandbox, a config with one http sink, and its receiver. */
async function anHttpJourney() {
  const { sandbox, env, configure } = await aJourney({
    ...{ events, source: 'every: 1s, page_limit: 50', more: 'status: { listen: 127.0.0.1:0 }' },
  });
  const receiver = await startHttpReceiver();
  const config = configure('sluice', {
    sinks: `  post: { type: http, url: "${receiver.url}/in", format: { type: json, schema: original }, batch: { events: 40 }, retry: { min: 50ms, max: 200ms } }`,
  });
  const ledger = () => new Set(sandbox.ledger().list('/v1/audit/events').ids());
  return { config, env, receiver, ledger };
}

function idsOf(body: Buffer): readonly string[] {
  return [...body.toString('utf8').matchAll(/^\{"id":"([^"]+)"/gm)].map(([, id = '']) => id);
}

/** Has the receiver accept its first request and refuse all others until `mend`; the ids that it accepted. */
function faultyAfterFirst(receiver: HttpReceiver) {
  const accepted: string[] = [];
  let isFaulty = false;
  let isMended = false;
  receiver.answer(({ body }) => {
    if (isFaulty && !isMended) return bad;
    accepted.push(...idsOf(body));
    isFaulty = true;
    return ok;
  });
  return {
    accepted,
    repair: () => {
      isMended = true;
    },
  };
}

async function statusOf(config: string, env: Record<string, string>) {
  const { stdout } = await runHere(['status', '-c', config, '--json'], env);
  return JSON.parse(stdout);
}

test('a receiver that answers 400 to all after a first delivery gets every event once it accepts again, also after a kill', async () => {
  const { config, env, receiver, ledger } = await anHttpJourney();
  const { accepted, repair } = faultyAfterFirst(receiver);
  const first = startSluice(['run', '-c', config], { env });
  await waitUntil(() => receiver.requests.length > 20, { what: 'several probes' });
  await waitUntil(async () => (await statusOf(config, env)).sinks[0].suspects?.stuck === true, {
    what: 'the suspects in the status',
    everyMs: 500,
  });
  const seen = await statusOf(config, env);
  await first.kill('SIGKILL');
  const second = startSluice(['run', '-c', config], { env });
  const before = receiver.requests.length;
  await waitUntil(() => receiver.requests.length > before + 10, { what: 'probes after the kill' });
  repair();
  await waitUntil(() => new Set(accepted).size === events, {
    what: () => `all events; ${new Set(accepted).size} came`,
  });
  await second.kill('SIGTERM');
  const after = await statusOf(config, env);

  const [sink] = seen.sinks;
  expect(sink.dead_letters).toBe(0);
  expect(sink.error.message).toContain('the index is read-only');
  expect(sink.suspects.events).toBeGreaterThanOrEqual(2);
  expect(sink.suspects.first[0]).toMatchObject({ uid: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(new Set(accepted)).toEqual(ledger());
  expect(after.sinks[0]).toMatchObject({ dead_letters: 0, suspects: null });
});

test('run --once against a receiver that refuses everything ends with 1 and names suspects', async () => {
  const { config, env, receiver } = await anHttpJourney();
  receiver.answer(bad);

  const { exitCode, stdout, stderr } = await runSluice(['run', '-c', config, '--once'], { env });

  expect([exitCode, stderr]).toEqual([1, stderr]);
  expect(stdout).toMatch(/suspect [0-9a-f]{64}, stream audit/);
  expect(stdout).toContain('0 dead letters');
});

test('an operator moves suspects to the dead letters, and finds them by the time at which they were made', async () => {
  const { config, env, receiver } = await anHttpJourney();
  receiver.answer(bad);
  const sluice = startSluice(['run', '-c', config], { env });
  await waitUntil(async () => (await statusOf(config, env)).sinks[0].suspects?.stuck === true, {
    what: 'suspects',
    everyMs: 500,
  });
  const [first] = (await statusOf(config, env)).sinks[0].suspects.first;
  const add = ['dead-letters', 'add', '-c', config, '--sink', 'post', '--uid', first.uid];

  const unknown = [...add.slice(0, -1), '0'.repeat(64), '--yes'];
  const missed = await runHere(unknown, env);
  const asked = await runHere(add, env);
  const moved = await runHere([...add, '--yes'], env);
  await waitUntil(async () => (await statusOf(config, env)).sinks[0].dead_letters === 1, {
    what: 'the dead letter',
    everyMs: 500,
  });
  const listed = await runHere(
    ['dead-letters', 'list', '-c', config, '--json', '--since', '2020-01-01T00:00:00Z'],
    env,
  );
  const none = await runHere(
    ['dead-letters', 'list', '-c', config, '--json', '--since', '2999-01-01T00:00:00Z'],
    env,
  );
  await sluice.kill('SIGTERM');

  expect(missed.stdout).toContain('post: no suspect has this uid; nothing was moved.');
  expect([asked.exitCode, moved.exitCode, moved.stdout]).toEqual([
    1,
    0,
    'post: 1 moved to the dead letters\n',
  ]);
  expect(JSON.parse(listed.stdout)).toMatchObject({ uid: first.uid, sink: 'post' });
  expect(none.stdout).toBe('');
});
