// `sluice run` on the real program while its file changes: both ways to request a reload, and that a file gets each
// event once through many reloads at full speed. Restarted and refused parts are tested in reload.test.ts.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aSetup, auditPath, type Setup } from '../commands/a-setup.ts';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';

type Run = Setup & { readonly sluice: RunningSluice };

function write({ config }: Setup, change: (text: string) => string): void {
  writeFileSync(config, change(readFileSync(config, 'utf8')));
}

/** What the process logs from now on with this text. */
async function saidNext({ sluice }: Run, text: string, act: () => void) {
  const before = sluice.stderr.length;
  act();
  const line = await waitUntil(
    () => sluice.stderr.slice(before).find((one) => one.includes(text)),
    { what: () => `"${text}"; stderr: ${sluice.stderr.slice(before).join('\n')}` },
  );
  return JSON.parse(line);
}

const hangUp = ({ sluice }: Run) => process.kill(sluice.pid, 'SIGHUP');

test('run reads its config again at SIGHUP and when the file has changed', async () => {
  const setup = await aSetup({ sandbox: { events: 50 } });
  const run = { ...setup, sluice: startSluice(['run', '-c', setup.config, '--allow-removal']) };
  await run.sluice.waitForLine('"running"');
  const second = `  second: { type: file, path: ${join(run.dir, 'second.ndjson')} }\n`;

  const asked = await saidNext(run, 'config reloaded', () => {
    write(run, (text) => text + second);
    hangUp(run);
  });
  const noticed = await saidNext(run, 'config reloaded', () =>
    write(run, (text) => text.replace(second, '')),
  );
  const { exitCode, stderr } = await run.sluice.kill();

  expect(asked).toMatchObject({ reason: 'SIGHUP', added: 'sink second' });
  expect(noticed).toMatchObject({ reason: 'the file has changed', removed: 'sink second' });
  expect(exitCode).toBe(0);
  expect(stderr.match(/"sink is caught up"/g)).toHaveLength(1);
});

test('run loses and repeats nothing through reloads under load', async () => {
  const setup = await aSetup({ sandbox: { events: 2_000 } });
  const run = { ...setup, sluice: startSluice(['run', '-c', setup.config]) };
  await run.sluice.waitForLine('"running"');
  let grown = 2_000;
  const grow = () => {
    run.sandbox.control.grow(auditPath, 400);
    grown += 400;
  };

  for (let i = 1; i <= 6; i += 1) {
    grow();
    const line = await saidNext(run, 'config reloaded', () => {
      write(run, (text) =>
        text
          .replace(/, (batch: \S+ \S+ \S+ \S+ )?path:/, `, batch: { events: 50${i} }, path:`)
          .replace(/every: \d+ms/, `every: 2${i}ms`),
      );
      hangUp(run);
    });
    expect(line.changed).toBe('stream audit, sink disk');
    grow();
  }
  await waitUntil(() => new Set(run.delivered()).size >= grown, { what: 'all events' });
  await run.sluice.kill();

  expect(run.sandbox.ledger().list(auditPath).size).toBe(grown);
  expect(run.delivered()).toHaveLength(grown);
  expect(new Set(run.delivered()).size).toBe(grown);
});
