// `sluice tap` on the real program: it shows what a sink would see, and leaves no trace.

import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { aSetup, auditPath } from './a-setup.ts';

describe('tap', () => {
  test('fetches by itself where nothing runs, and leaves no state behind', async () => {
    const { config, stateDir, delivered } = await aSetup();
    const temp = tempDir();
    const tap = startSluice(['tap', '-c', config], { env: { TMPDIR: temp } });
    await waitUntil(() => tap.stdout.length >= 250, { what: '250 events on the screen' });

    const { exitCode } = await tap.kill('SIGINT');

    expect(exitCode).toBe(0);
    expect(readdirSync(temp).filter((name) => name.startsWith('sluice-tap'))).toEqual([]);
    expect(existsSync(stateDir)).toBe(false);
    await runSluice(['run', '-c', config, '--once']);
    expect(tap.stdout.map((line) => JSON.parse(line).metadata.uid)).toEqual(delivered());
  });

  test('shows only what the next run would fetch, and moves nothing', async () => {
    const { config, delivered, sandbox } = await aSetup();
    await runSluice(['run', '-c', config, '--once']);
    sandbox.control.grow(auditPath, 15);
    const tap = startSluice(['tap', '-c', config, '--format', 'cef']);
    await waitUntil(() => tap.stdout.length >= 15, { what: '15 events on the screen' });
    await tap.kill();

    await runSluice(['run', '-c', config, '--once']);

    expect(tap.stdout).toHaveLength(15);
    expect(tap.stdout.every((line) => line.startsWith('CEF:0|'))).toBe(true);
    expect(delivered()).toHaveLength(265);
  });

  test('follows a process that runs, from now on', async () => {
    const { config, delivered, sandbox } = await aSetup();
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('"running"');
    await waitUntil(() => count(delivered) === 250, { what: '250 events' });
    const tap = startSluice(['tap', '-c', config]);
    await tap.waitForLine(`following process ${sluice.pid}`);
    // It looks from the moment that its database is open, a little after it has said so.
    const seen = async () => {
      sandbox.control.grow(auditPath, 1);
      const before = tap.stdout.length;
      await waitUntil(() => tap.stdout.length > before, { what: 'a line', timeoutMs: 1_000 }).catch(
        () => undefined,
      );
      return tap.stdout.length > 0;
    };
    await waitUntil(seen, { what: 'the first event followed' });

    sandbox.control.grow(auditPath, 12);
    await waitUntil(() => tap.stdout.length >= 13, { what: 'what came since' });

    const { exitCode } = await tap.kill('SIGINT');
    await sluice.kill();
    const uids = tap.stdout.map((line) => JSON.parse(line).metadata.uid);
    expect(exitCode).toBe(0);
    expect(uids).toEqual(delivered().slice(-uids.length));
  });

  test.each([
    { flag: ['--source', 'audti'], says: 'did you mean audit?' },
    { flag: ['--format', 'otel'], says: 'known: json, cef, syslog' },
  ])('$flag is a usage error', async ({ flag, says }) => {
    const { config } = await aSetup();

    const { stderr, exitCode } = await runSluice(['tap', '-c', config, ...flag]);

    expect(exitCode).toBe(64);
    expect(stderr).toContain(says);
  });
});

function count(read: () => readonly string[]): number {
  try {
    return read().length;
  } catch {
    return 0;
  }
}
