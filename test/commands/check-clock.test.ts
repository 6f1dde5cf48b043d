// `check --connect` with servers whose clocks differ from this machine's.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { runHere } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { tempDir } from '../support/temp.ts';

const hourMs = 3_600_000;
const screen = 'screen: { type: stdout }';

/** What `check` says of sources whose upstreams are so many milliseconds ahead of this machine. */
async function checked(sinks: string, ...aheadMs: readonly number[]) {
  const dir = tempDir();
  const urls = await Promise.all(
    aheadMs.map(async (ms) => {
      const answer = () => ({
        answer: 'reply' as const,
        status: 200,
        headers: { date: new Date(Date.now() + ms).toUTCString() },
        body: '{"data":[],"next_cursor":null}',
      });
      return (await startHttpReceiver({ answer })).url;
    }),
  );
  const upstreams = urls.map(
    (url, i) =>
      `  u${i}: { api: unified, ends: never, base_url: "${url}", allow_http: true, auth: { api_key: k } }`,
  );
  const sources = urls.map((_, i) => `  s${i}: { type: audit_events, upstream: u${i} }`);
  const config = join(dir, 'sluice.yaml');
  const key = signingKeyText('archive.test', Buffer.alloc(32, 1));
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
${upstreams.join('\n')}
sources:
${sources.join('\n')}
sinks: { ${sinks.replace('ARCHIVE', `proof: { type: archive, location: ${dir}/archive, signing_key: "${key}" }`)} }
`,
  );
  const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);
  return { exitCode, clock: stdout.split('\n').find((line) => line.includes('clock')) ?? '' };
}

test('a clock that every server contradicts is reported, and refused if an archive is to prove times', async () => {
  const behind = 'the clock of this machine is 1h behind that of every server that answered';

  expect(await checked(screen, 0)).toEqual({ exitCode: 0, clock: '' });
  expect(await checked(screen, hourMs)).toEqual({
    exitCode: 0,
    clock: expect.stringMatching(`note +${behind}`),
  });
  expect(await checked(screen, -hourMs)).toMatchObject({
    clock: expect.stringContaining('ahead of'),
  });
  expect(await checked(screen, hourMs, 0)).toEqual({ exitCode: 0, clock: '' });
  expect(await checked('ARCHIVE', hourMs)).toEqual({
    exitCode: 3,
    clock: expect.stringMatching(`FAIL +clock: .*${behind}`),
  });
});
