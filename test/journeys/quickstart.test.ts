// What a newcomer does: `npm start`, look, Ctrl-C, `npm start` again. The real program in a directory of its own.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type RunningSluice, runSluice, startSluice } from '../support/cli.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

test('quickstart shows events, keeps them in a file and in an archive, and resumes without repeating any', async () => {
  const cwd = tempDir();
  const file = join(cwd, 'out', 'quickstart.ndjson');

  const first = startSluice(['quickstart'], { cwd });
  await first.waitForLine('first start');
  const reported = await first.waitForLine('status page: ');
  const [page = ''] = /http:\S+?(?=\u001b|$)/.exec(reported) ?? [];
  expect(await (await fetch(`${page}/status.json`)).json()).toMatchObject({ streams_total: 7 });
  const proof = await first.waitForLine('prove that nothing is missing: npx sluice ');
  await first.waitForLine('npx sluice init');
  await first.waitForLine('checkpoints: ');
  await waitUntil(() => uidsIn(file).length > 200, { what: 'the first events' });
  const afterFirst = await first.kill('SIGINT');
  const shownFirst = first.stdout.filter(isOfUpstream).length;
  const uidsFirst = uidsIn(file);
  const second = startSluice(['quickstart'], { cwd });
  await second.waitForLine('resumes: delivered events are not sent again');
  await waitUntil(() => uidsIn(file).length > uidsFirst.length, { what: 'new events' });
  const afterSecond = await second.kill('SIGINT');

  const uids = uidsIn(file);
  expect([afterFirst.exitCode, afterSecond.exitCode]).toEqual([0, 0]);
  expect(shownFirst).toBe(uidsFirst.length);
  expect(shownFirst + second.stdout.filter(isOfUpstream).length).toBe(uids.length);
  expect(new Set(uids).size).toBe(uids.length);
  expect(first.stdout.filter((line) => !isReadable(line))).toEqual([]);
  const [, command = ''] = /npx sluice ([^\u001b]+)/.exec(proof) ?? [];
  const verified = await runSluice(command.trim().split(' '), { cwd });
  expect([verified.exitCode, verified.stdout]).toEqual([0, expect.stringContaining('whole')]);
});

test('a quickstart that runs already is named, and stays', async () => {
  const cwd = tempDir();
  const first: RunningSluice = startSluice(['quickstart'], { cwd });
  await first.waitForLine('first start');

  const second = startSluice(['quickstart'], { cwd });
  const { exitCode, stderr } = await second.exited;

  expect(exitCode).toBe(1);
  expect(stderr).toContain(`process ${first.pid}`);
  expect(first.running).toBe(true);
});

test('a quickstart starts where another was killed while it made the key', async () => {
  const cwd = tempDir();
  mkdirSync(join(cwd, 'out'));
  writeFileSync(join(cwd, 'out', 'archive.key'), '');

  const next = startSluice(['quickstart'], { cwd });

  await next.waitForLine('first start');
});

/** Of upstream's records: the archive's last report at a stop is delivered by the next start. */
function uidsIn(file: string): readonly string[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line).metadata)
    .filter(({ log_name: log }) => log !== 'sluice')
    .map(({ uid }) => uid);
}

function isOfUpstream(line: string): boolean {
  return !line.includes('archive.checkpoint');
}

/** Date, severity, stream, and who did what, on one line of moderate length without control characters. */
function isReadable(line: string): boolean {
  return /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}\w+ +[\w/-]+ +\S[^\p{Cc}]{0,200}$/u.test(line);
}
