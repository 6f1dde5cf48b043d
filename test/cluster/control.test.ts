// What operators ask of the processes of a state in Kafka from any machine, on a real Apache Kafka: it is done once, also
// where who does it is killed meanwhile.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';

/** A deployment whose processes share a file, and commands from a machine where nothing runs. */
async function aDeployment(events: number) {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const out = join(dir, 'out.ndjson');
  const config = (instance: string) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 50 }
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
    );
    return file;
  };
  const elsewhere = config('elsewhere');
  const uids = () =>
    readFileSync(out, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid);
  return {
    ...{ sandbox, uids },
    start: (instance: string) => startSluice(['run', '-c', config(instance)], { env }),
    command: async (...words: string[]) => await runHere([...words, '-c', elsewhere], env),
    states: async () => {
      const { stdout, stderr, exitCode } = await runHere(
        ['cluster', '-c', elsewhere, '--json'],
        env,
      );
      expect(exitCode, stderr).toBe(0);
      const { processes } = JSON.parse(stdout) as {
        processes: { instance: string; state: string }[];
      };
      return Object.fromEntries(processes.map(({ instance, state }) => [instance, state]));
    },
    sent: (count: number) =>
      waitUntil(() => uids().length >= count, { what: () => `${count} of ${uids().length}` }),
  };
}

test('a process that is drained lets go in order and takes nothing more, also after a restart, until it is let in again', async () => {
  const { sandbox, uids, start, command, states, sent } = await aDeployment(200);
  const first = start('sluice-0');
  await first.waitForLine('running');
  const second = start('sluice-1');
  await second.waitForLine('standing by');
  await sent(200);

  const unknown = await command('cluster', 'drain', 'sluice-O\u001b[2J');
  expect(unknown.exitCode).toBe(64);
  expect(unknown.stderr).toContain('known: sluice-0, sluice-1');
  expect(unknown.stderr).not.toContain('\u001b');
  const drained = await command('cluster', 'drain', 'sluice-0');
  expect(drained.exitCode, drained.stderr).toBe(0);
  expect(drained.stdout).toContain('sluice-0 stands by; sluice-1 works');
  await second.waitForLine('running');
  expect(first.running).toBe(true);
  expect(first.stderr.join('\n')).toContain('the sink has everything');
  expect(await states()).toEqual({ 'sluice-0': 'drained', 'sluice-1': 'working' });
  sandbox.control.grow(audit, 20);
  await sent(220);

  await first.kill('SIGKILL');
  await second.kill('SIGKILL');
  const again = start('sluice-0');
  await again.waitForLine('standing by: drained');
  // Brokers tell nothing of members while they are joining.
  const become = (wanted: Awaited<ReturnType<typeof states>>) =>
    waitUntil(async () => isDeepStrictEqual(await states(), wanted), {
      what: `the processes to be ${JSON.stringify(wanted)}`,
      everyMs: 200,
    });
  await become({ 'sluice-0': 'drained' });
  sandbox.control.grow(audit, 20);
  const lifted = await command('cluster', 'undrain', 'sluice-0');
  expect(lifted.exitCode, lifted.stderr).toBe(0);
  await again.waitForLine('running');
  await sent(240);
  await become({ 'sluice-0': 'working' });
  expect((await command('cluster', 'undrain', 'sluice-0')).exitCode).toBe(64);
  expect((await again.kill('SIGTERM')).exitCode).toBe(0);
  expect([new Set(uids()).size, uids().length]).toEqual([240, 240]);
}, 600_000);
