// The real program on a state directory that was damaged while it was down: it says so, keeps what it found, and delivers
// everything all the same, what it still held and what it has to read again.

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aSetup, auditPath } from '../commands/a-setup.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { waitUntil } from '../support/temp.ts';

const block = 4_096;

/** Zeros in place of every fifth block of the disk, as a failing one leaves them, the file's header left out. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  for (let at = 4 * block; at < bytes.length; at += 5 * block) bytes.fill(0, at, at + block);
  writeFileSync(path, bytes);
}

test('run repairs a damaged state directory, reports the repair, and loses nothing', async () => {
  const receiver = await startHttpReceiver();
  await receiver.close();
  const { config, stateDir, sandbox } = await aSetup({
    sinks: [
      `  post: { type: http, url: "${receiver.url}", format: { type: json, schema: ocsf }, retry: { min: 50ms, max: 200ms } }`,
    ],
    more: ['shutdown: { timeout: 100ms }'],
  });
  const first = startSluice(['run', '-c', config]);
  // Three pages, and the next poll.
  const held = () => (sandbox.control.requests()[auditPath]?.requests ?? 0) >= 4;
  await waitUntil(held, { what: 'all events to be read' });
  await first.kill('SIGTERM');
  damage(join(stateDir, 'sluice.db'));
  const damaged = readFileSync(join(stateDir, 'sluice.db'));

  await receiver.reopen();
  const second = await runSluice(['run', '-c', config, '--once']);

  expect(second.stderr).toContain('the state database was damaged; it was set aside and rebuilt');
  expect(second.exitCode).toBe(0);
  const [aside = ''] = readdirSync(stateDir).filter((name) => name.startsWith('damaged-'));
  expect(second.stderr).toContain(join(stateDir, aside));
  expect(readFileSync(join(stateDir, aside, 'sluice.db')).equals(damaged)).toBe(true);
  const events = receiver.requests.flatMap(({ body }) =>
    body
      .toString()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line)),
  );
  const ids = new Set(events.map(({ metadata }) => metadata.original_event_uid));
  for (const id of sandbox.ledger().list(auditPath).ids()) expect(ids).toContain(id);
  const conditions = events.filter(
    ({ metadata }) => metadata.event_code === 'source.checkpoint_reset',
  );
  expect(conditions.map(({ message }) => message)).toEqual([
    expect.stringContaining('the state database was damaged'),
  ]);
  const mode = (name: string) => statSync(join(stateDir, name)).mode & 0o777;
  expect(readdirSync(stateDir).map((name) => [name, mode(name)])).toEqual(
    readdirSync(stateDir).map((name) => [name, name === aside ? 0o700 : 0o600]),
  );
});
