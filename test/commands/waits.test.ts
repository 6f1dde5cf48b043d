// What status and explain say of a stream that waits, from the state directory alone: until when, or for what.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explain } from '../../src/commands/explain.ts';
import { status } from '../../src/commands/status.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { received } from '../run/run-command.ts';
import { anAppend } from '../support/a-page.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

/** The state of a run under way, without a status server. */
async function aRun() {
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  const lines = [
    `state: { dir: ${join(dir, 'state')}, max_bytes: 1MiB }`,
    'upstreams: { a: { api: unified, ends: never, base_url: "https://a.example/v1", auth: { api_key: k } } }',
    'sources: { audit: { type: audit_events, upstream: a } }',
    'sinks: { screen: { type: stdout } }',
  ];
  writeFileSync(config, lines.join('\n'));
  const settings = { sync: 'normal', keepMs: 0, bytesMax: 1024 ** 2, sinks: ['screen'] } as const;
  const spool = await openSpool({ dir: join(dir, 'state'), ...settings });
  afterThisTest(() => spool.close());
  const said = async (command: Parameters<typeof received>[0]) =>
    (await received(command)).out.join('\n');
  return {
    spool,
    reported: async () => ({
      table: await said((deps) => status.run({ config }, deps)),
      json: JSON.parse(await said((deps) => status.run({ config, json: true }, deps))),
      audit: await said((deps) => explain.run({ stream: 'audit', config }, deps)),
    }),
  };
}

test('until when, if upstream has requested a long wait', async () => {
  const { spool, reported } = await aRun();
  const nextPollAt = Date.now() + 30 * 86_400_000;
  const error = { code: 'upstream_throttled', message: 'upstream answered 429', next: 'Wait.' };
  const facts = { source: 'audit', state: 'retrying', caught_up_at: null, error };
  spool.note('stream', 'audit', { ...facts, next_poll_at: nextPollAt });
  await spool.append(anAppend({ ids: ['1'] }));

  const { table, json, audit } = await reported();

  expect(table).toMatch(/^audit .* retrying +in (30d 0h|29d 23h) +upstream answered 429$/m);
  expect(json.streams[0]).toMatchObject({
    next_poll_at: new Date(nextPollAt).toISOString(),
    waits_for: null,
  });
  expect(audit).toMatch(/^next poll +in (30d 0h|29d 23h)$/m);
});

test('for room in the spool, also before a stream was polled at all', async () => {
  const { spool, reported } = await aRun();
  await spool.append(anAppend({ ids: ['1'], pad: 2 * 1024 ** 2, stream: 'other' }));

  const { table, json, audit } = await reported();

  expect(table).toMatch(/^audit .* new +with room in the spool/m);
  expect(json.streams[0]).toMatchObject({ state: 'new', waits_for: 'room in the spool' });
  expect(audit).toMatch(/^audit: waits for room in the spool, which is full; nothing is lost$/m);
  expect(audit).toMatch(/^next poll +once there is room in the spool$/m);
  expect(audit).toMatch(
    /^next step +Find the sink that does not accept its events: npx sluice status/m,
  );
});
