// Whose state in Kafka it is, on a real Apache Kafka: the first process stores its deployment, and another deployment is
// refused before it polls upstream, also where both start at once on an empty state.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection, ResponseError } from '@platformatic/kafka';
import { describe, expect, test } from 'vitest';
import { Control } from '../../src/cluster/control.ts';
import { compareDeployments, deploymentOf, differenceText } from '../../src/cluster/deployment.ts';
import type { MemberSettings } from '../../src/cluster/log/settings.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { agreeOnDeployment } from '../../src/run/deployment.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers, startKafka } from '../support/kafka.ts';
import { testTools } from '../support/sink-opening.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const events = 60;
const timeoutMs = 120_000;

/** A config of a state that several use, its upstreams, and what it has delivered. */
function aConfig(
  of: { readonly brokers: readonly string[]; readonly prefix: string },
  edges: readonly Awaited<ReturnType<typeof anEdge>>[],
  { deployment }: { readonly deployment?: string } = {},
) {
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  const out = join(dir, 'out.ndjson');
  const names = edges.map(({ entry }) => /^ {2}(\w+):/.exec(entry)?.[1] ?? '');
  const named = deployment === undefined ? '' : `, deployment: ${deployment}`;
  writeFileSync(
    file,
    `state:
  dir: ${dir}/state
  kafka: { brokers: ${JSON.stringify(of.brokers)}, prefix: ${of.prefix}, session_timeout: 6s${named} }
upstreams:
${edges.map(({ entry }) => entry).join('\n')}
sources:
${names.map((name) => `  audit_${name}: { type: audit_events, upstream: ${name}, every: 1s }`).join('\n')}
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
  );
  const env = Object.assign({}, ...edges.map((edge) => edge.env));
  const lines = () =>
    existsSync(out) ? readFileSync(out, 'utf8').split('\n').slice(0, -1).length : 0;
  const run = () =>
    runSluice(['run', '-c', file, '--once', '--timeout', '90s'], { env, timeoutMs });
  const check = () => runHere(['check', '-c', file, '--connect'], env);
  return { lines, run, check };
}

const aState = async () => ({ brokers: await kafkaBrokers(), prefix: `p-${crypto.randomUUID()}` });

test('another deployment is refused at an idle state, and the stored name lets it continue', async () => {
  const state = await aState();
  const one = await anEdge(events);
  // The same address, which would take the cursors of the other one.
  const { clientId } = one.sandbox.credentials;
  const two = { ...one, entry: one.entry.replace(clientId, 'another-client') };
  const first = aConfig(state, [one]);
  const fresh = await first.check();
  const ran = await first.run();
  const other = aConfig(state, [two]);
  const checked = await other.check();
  const refused = await other.run();
  const again = await first.check();
  const name = /belongs to the deployment (\S+?),/.exec(refused.stderr)?.[1] ?? 'none';
  const renamed = aConfig(state, [two], { deployment: 'another' });
  const wrong = await renamed.run();
  const named = aConfig(state, [two], { deployment: name });
  const continued = await named.run();

  expect(fresh.exitCode, fresh.stdout).toBe(0);
  expect(fresh.stdout).toContain(`deployment ${name}: not stored yet; the first start stores it`);
  expect(ran.exitCode, ran.stderr).toBe(0);
  expect(first.lines()).toBe(events);
  expect(name).toMatch(/^127\.0\.0\.1-[0-9a-f]{12}$/);
  for (const { stderr, exitCode } of [refused, wrong]) {
    expect(exitCode, stderr).toBe(1);
    expect(stderr).toContain(`set state.kafka.deployment to ${name}`);
  }
  expect(checked.exitCode, checked.stdout).toBe(3);
  expect(checked.stdout).toContain(`belongs to the deployment ${name}`);
  expect(other.lines()).toBe(0);
  expect(again.exitCode, again.stdout).toBe(0);
  expect(again.stdout).toContain(`deployment ${name}\n`);
  // The sandbox does not know this client.
  expect(continued.stderr).toContain('this process owns the state in Kafka');
}, 600_000);

test('a config that shares an upstream is accepted, and what differs is named', {
  tags: ['long'],
}, async () => {
  const state = await aState();
  const [one, two, three] = [
    await anEdge(5, 'one'),
    await anEdge(5, 'two'),
    await anEdge(5, 'three'),
  ];
  const before = await aConfig(state, [one, two]).run();
  const after = aConfig(state, [two, three]);
  const checked = await after.check();
  const ran = await after.run();
  const settled = await after.check();

  expect(before.exitCode, before.stderr).toBe(0);
  expect(checked.stdout).toMatch(/deployment \S+; upstreams added: three; missing: one/);
  expect(ran.exitCode, ran.stderr).toBe(0);
  expect(ran.stderr).toContain('the upstreams of the deployment have changed');
  expect(settled.stdout).not.toContain('upstreams added');
});

test('a state of an older version gets the name of the first process, and a check says so before', async () => {
  const state = await aState();
  const config = aConfig(state, [await anEdge(5)]);
  await config.run();
  const control = new OlderControl(settingsOf(state), systemClock());
  await control.readAll();
  await control.forget();
  await control.close();

  const before = await config.check();
  const ran = await config.run();
  const after = await config.check();

  expect(before.exitCode, before.stdout).toBe(0);
  expect(before.stdout).toMatch(/deployment \S+: not stored yet; the state is of an older version/);
  expect(ran.exitCode, ran.stderr).toBe(0);
  expect(after.stdout).not.toContain('not stored yet');
}, 600_000);

class OlderControl extends Control {
  /** An older version stores neither a deployment nor claims. */
  async forget(): Promise<void> {
    await this.write(['deployment', 'state'], null);
    for (const { name } of this.claims) await this.unclaim(name);
  }
}

function settingsOf(
  { brokers, prefix }: Awaited<ReturnType<typeof aState>>,
  digests: Readonly<Record<string, string>> = {},
): MemberSettings {
  return {
    brokers: brokers.map(parseHostPort).filter((one) => one !== null),
    ...{ prefix, sessionMs: 6_000, deployment: () => Object.values(digests) },
    upstreams: () => ({ addresses: { edge: 'https://api.example' }, digests }),
  };
}

test('of two deployments that start at once on an empty state exactly one wins, with all its processes', {
  tags: ['long'],
}, async () => {
  for (let round = 0; round < 5; round += 1) {
    const state = await aState();
    const clock = systemClock();
    const { log } = testTools();
    const start = async (upstream: string) => {
      const settings = settingsOf(state, { edge: upstream });
      const control = new Control(settings, clock);
      afterThisTest(() => control.close());
      await control.follow(log);
      try {
        await agreeOnDeployment(settings, { control, clock, log });
        return upstream;
      } catch (error) {
        expect(error).toMatchObject({ code: 'config_invalid' });
        return null;
      }
    };
    const starts = ['one', 'other', 'one', 'other', 'one', 'other'].map(start);
    const won = (await Promise.all(starts)).filter((upstream) => upstream !== null);

    expect(won).toEqual(Array(3).fill(won[0]));
    expect([await start(won[0] ?? ''), await start(won[0] === 'one' ? 'other' : 'one')]).toEqual([
      won[0],
      null,
    ]);
  }
});

test('two processes of two deployments at once: one runs, the other is refused and delivers nothing', {
  tags: ['long'],
}, async () => {
  const state = await aState();
  const configs = [aConfig(state, [await anEdge(events)]), aConfig(state, [await anEdge(events)])];
  const ended = await Promise.all(configs.map(({ run }) => run()));

  expect(ended.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1]);
  for (const [i, { exitCode }] of ended.entries()) {
    expect(configs[i]?.lines()).toBe(exitCode === 0 ? events : 0);
  }
});

describe('compareDeployments', () => {
  const stored = { name: 'stored', upstreams: { edge: 'a', ops: 'b' } };
  const compare = (upstreams: Record<string, string>, name?: string) =>
    compareDeployments(stored, { name: name ?? 'x', upstreams, isNamed: name !== undefined });

  test.each([
    [{ edge: 'a', ops: 'b' }, undefined, { isForeign: false }, ''],
    [{ other: 'a' }, undefined, { isForeign: false }, 'missing: ops'],
    [{ edge: 'c', ops: 'b' }, undefined, { isForeign: false }, 'changed: edge'],
    [{ edge: 'b', new: 'c' }, undefined, { isForeign: false }, 'added: new; missing: edge'],
    [{ edge: 'c' }, undefined, { isForeign: true }, 'missing: ops; changed: edge'],
    [{ edge: 'c' }, 'stored', { isForeign: false }, 'missing: ops; changed: edge'],
    [{ edge: 'a', ops: 'b' }, 'other', { isForeign: true }, ''],
  ])('%j named %s', (upstreams, name, foreign, difference) => {
    const compared = compare(upstreams as Record<string, string>, name);
    expect(compared).toMatchObject(foreign);
    expect(differenceText(compared)).toBe(difference);
  });

  test('a config without upstreams and name is not compared', () => {
    expect(deploymentOf({ upstreams: () => ({ addresses: {}, digests: {} }) })).toBeNull();
  });
});

test('a request to a loading coordinator is repeated, and no right is reported as missing', async () => {
  const kafka = await startKafka();
  const state = { brokers: [kafka.addresses.plain], prefix: 'fresh' };
  const asked = loadingAtFirst(2);
  const checked = await aConfig(state, [await anEdge(5)]).check();

  expect(asked()).toBeGreaterThan(2);
  expect(checked.stdout).not.toContain('lacks');
  expect(checked.exitCode, checked.stdout).toBe(0);
}, 300_000);

interface Sender {
  send(apiKey: number, ...rest: readonly unknown[]): void;
}

/** Has the first requests for a group answered as a coordinator does that is still loading. */
function loadingAtFirst(times: number): () => number {
  const describeGroups = 15;
  const sender = Connection.prototype as unknown as Sender;
  const { send } = sender;
  let count = 0;
  sender.send = function replaced(this: Sender, apiKey, ...rest) {
    if (apiKey !== describeGroups || ++count > times) return send.call(this, apiKey, ...rest);
    const group = { errorCode: 14, groupId: 'x', authorizedOperations: -(2 ** 31), members: [] };
    const errors = { '/groups/0': [14, null] } as const;
    const answer = { throttleTimeMs: 0, groups: [group] };
    const error = new ResponseError(describeGroups, 5, errors as never, answer);
    (rest.at(-1) as (error: Error) => void)(error);
  };
  afterThisTest(() => {
    sender.send = send;
  });
  return () => count;
}
