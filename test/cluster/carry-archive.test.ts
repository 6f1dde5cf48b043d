// A state on its way into Kafka beside an archive that is not the one of this state: older, newer, another one, in use, or
// with a changed mark. Then the writer refuses, or `verify` breaks, or the archive has each record of upstream.
// @module-tag long

import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { parseSigningKey, signingKeyText } from '../../src/archive/note.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const keyText = signingKeyText('carried', Buffer.alloc(32, 1));
const { vkey } = parseSigningKey(keyText).verifier;
const once = ['--once', '--log-level', 'error', '--timeout', '120s'];

/** The part of a mark that an attacker changes. */
interface Mark {
  readonly heads: { readonly streams: Readonly<Record<string, readonly [number, string]>> };
}

/** A state of 40 records, the same state of 50, each with the archive of that time, and an archive of another state. */
async function aCarrying() {
  const brokers = JSON.stringify(await kafkaBrokers());
  const edge = await anEdge(40);
  const env = { ...edge.env, KEY: keyText };
  const dir = tempDir();
  const config = (name: string, state: string, archive = 'archive') => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state: ${state}
${edge.upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 7 }
sinks:
  proof: { type: archive, shared: true, location: ${dir}/${archive}, signing_key: "\${env:KEY}", checkpoint_every: 1s }
`,
    );
    return file;
  };
  const copied = (from: string, to: string) => {
    rmSync(join(dir, to), { recursive: true, force: true });
    cpSync(join(dir, from), join(dir, to), { recursive: true });
  };
  const ran = async (file: string) => {
    const { exitCode, stdout, stderr } = await runHere(['run', '-c', file, ...once], env);
    return { exitCode, all: stdout + stderr };
  };
  /** Imports a state into Kafka, as a new one; the config's file. */
  const imported = async (state: string, at = 'archive') => {
    const prefix = `p-${crypto.randomUUID()}`;
    const kafka = `{ dir: ${dir}/${prefix}, kafka: { brokers: ${brokers}, prefix: ${prefix} } }`;
    const file = config(prefix, kafka, at);
    const from = ['cluster', 'import', '-c', file, '--from', join(dir, state)];
    const { exitCode, stderr } = await runHere(from, env);
    expect(exitCode, stderr).toBe(0);
    return file;
  };
  const grow = () => edge.sandbox.control.grow(audit, 10);
  const sqlite = config('sqlite', `{ dir: ${dir}/state }`);
  expect((await ran(sqlite)).exitCode).toBe(0);
  copied('state', 'state-40');
  copied('archive', 'archive-40');
  grow();
  expect((await ran(sqlite)).exitCode).toBe(0);
  copied('state', 'state-50');
  copied('archive', 'archive-50');
  // A cursor of the sandbox has the second of its issue: two states of one second have the same one, and no gap.
  const second = () => Math.floor(Date.now() / 1_000);
  const read = second();
  await waitUntil(() => second() > read, { what: 'the next second' });
  expect((await ran(config('other', `{ dir: ${dir}/state-other }`, 'other'))).exitCode).toBe(0);
  grow();
  return {
    ...{ env, sqlite, ran, copied },
    /** Imports a state, and runs it once with the archive that is there; `at`: the name of the archive's directory. */
    async carried(state: string, at = 'archive') {
      const file = await imported(state, at);
      return { file, ...(await ran(file)) };
    },
    /** Imports a state, and runs it until its writer refuses the archive; the line of the log. */
    async refusal(state: string) {
      const sluice = startSluice(['run', '-c', await imported(state), '--log-level', 'warn'], {
        env,
      });
      const line = await sluice.waitForLine((one) => one.includes('"sink":"proof"'));
      await sluice.kill('SIGKILL');
      return line;
    },
    /** The exit code of `verify`, and how many different records the archive has. */
    async archived(at = 'archive') {
      const place = join(dir, at);
      const { exitCode } = await runHere(['archive', 'verify', place, '--key', vkey], env);
      const { stdout } = await runSluice(['archive', 'search', place, '--raw', '--key', vkey], {
        env,
      });
      const ids = stdout.split('\n').flatMap((line) => /"id":"(evt_\d+)"/.exec(line)?.[1] ?? []);
      return { exitCode, records: new Set(ids).size };
    },
    /** A copy of the newer state whose archive has another mark; null: none. */
    marked(change: (mark: Mark) => object | null) {
      copied('state-50', 'state-changed');
      const db = new DatabaseSync(join(dir, 'state-changed', 'sluice.db'));
      const { mark } = db.prepare('SELECT mark FROM position').get() as { readonly mark: string };
      const changed = change(JSON.parse(mark));
      const text = changed === null ? null : JSON.stringify(changed);
      db.prepare('UPDATE position SET mark = ?').run(text);
      db.close();
      return 'state-changed';
    },
  };
}

test('the archive has each record, or the writer refuses, or verify breaks', async () => {
  const { env, sqlite, ran, copied, carried, refusal, archived, marked } = await aCarrying();

  // The older state reads ten records again, and the archive has them twice.
  copied('archive-50', 'archive');
  expect(await carried('state-40')).toMatchObject({ exitCode: 0 });
  expect(await archived()).toEqual({ exitCode: 0, records: 60 });

  copied('archive-40', 'archive');
  expect(await refusal('state-50')).toContain('were signed');
  expect(await archived()).toEqual({ exitCode: 0, records: 40 });

  // Another archive of the same key does not say where this state continues: an open gap.
  copied('other', 'other-archive');
  expect(await carried('state-50', 'other-archive')).toMatchObject({ exitCode: 0 });
  expect(await archived('other-archive')).toEqual({ exitCode: 3, records: 60 });

  const refused = [
    [(mark: Mark) => ({ ...mark, root: '0'.repeat(64) }), 'it differs from the signed one'],
    [(mark: Mark) => ({ ...mark, archive: '1'.repeat(64) }), 'it is another archive'],
  ] as const;
  for (const [change, reason] of refused) {
    copied('archive-50', 'archive');
    expect(await refusal(marked(change))).toContain(reason);
    expect(await archived()).toEqual({ exitCode: 0, records: 50 });
  }
  const otherStreams = ({ heads, ...mark }: Mark) => ({
    ...mark,
    heads: {
      ...heads,
      streams: Object.fromEntries(
        Object.keys(heads.streams).map((name) => [name, [3, 'a'.repeat(64)]]),
      ),
    },
  });
  copied('archive-50', 'archive');
  await carried(marked(otherStreams));
  expect(await archived()).toMatchObject({ exitCode: 1 });
  copied('archive-50', 'archive');
  await carried(marked(() => null));
  expect(await archived()).toEqual({ exitCode: 0, records: 60 });

  // The state is imported while its first deployment runs: of two copies of one state one is refused.
  copied('archive-50', 'archive');
  const first = startSluice(['run', '-c', sqlite, '--log-level', 'error'], { env });
  await waitUntil(async () => (await archived()).records === 60 || null, {
    what: 'the first deployment to archive its records',
  });
  const second = await carried('state-50');
  await first.kill('SIGTERM');
  expect(second.exitCode === 0 || second.all.includes('another process writes to it')).toBe(true);
  expect(await archived()).toEqual({ exitCode: 0, records: 60 });
  // Both continue, one after the other.
  expect((await ran(second.file)).exitCode).toBe(0);
  expect((await ran(sqlite)).exitCode).toBe(0);
  expect(await archived()).toEqual({ exitCode: 0, records: 60 });
}, 1_200_000);
