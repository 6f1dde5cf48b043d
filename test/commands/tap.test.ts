// `sluice tap` on the real program: it shows what a sink would see, and leaves no trace.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { aSetup, auditPath } from './a-setup.ts';

/** One event in ten stays behind, and the others come without anyone's address. */
const routes = [
  'routes:',
  '  - from: [audit]',
  '    to: [disk]',
  `    where: '!event.metadata.original_event_uid.endsWith("5")'`,
  '    redact: [actor.user.email_addr, user.email_addr]',
];

describe('tap', () => {
  test('fetches by itself where nothing runs, and leaves no state behind', async () => {
    const { config, stateDir, delivered } = await aSetup({ more: routes });
    const temp = tempDir();
    const tap = startSluice(['tap', '-c', config], { env: { TMPDIR: temp } });
    await waitUntil(() => tap.stdout.length >= 225, { what: '225 events on the screen' });

    const { exitCode } = await tap.kill('SIGINT');

    expect(exitCode).toBe(0);
    expect(readdirSync(temp).filter((name) => name.startsWith('sluice-tap'))).toEqual([]);
    expect(existsSync(stateDir)).toBe(false);
    await runOnceHere(config);
    expect(tap.stdout.map((line) => JSON.parse(line).metadata.uid)).toEqual(delivered());
    expect(tap.stdout.filter((line) => line.includes('email_addr'))).toEqual([]);
  });

  test('shows only events that the next run would fetch, as the named sink gets them, and moves nothing', async () => {
    const { dir, config, delivered, sandbox } = await aSetup({
      more: [
        '  siem: { type: syslog, address: "udp://127.0.0.1:9", format: cef }',
        'routes:',
        '  - { from: [audit], to: [disk] }',
        '  - { from: [audit], to: [siem], redact: [actor.user, user] }',
      ],
    });
    await runOnceHere(config);
    sandbox.control.grow(auditPath, 15);
    const tap = startSluice(['tap', '-c', config, '--sink', 'siem']);
    await waitUntil(() => tap.stdout.length >= 15, { what: '15 events on the screen' });
    await tap.kill();

    await runOnceHere(config);

    expect(tap.stdout).toHaveLength(15);
    expect(tap.stdout.every((line) => /^<\d+>1 .*CEF:0\|/.test(line))).toBe(true);
    // An agent that acts is no user.
    expect(tap.stdout.filter((line) => / suser=(?!.* suid=agt_)/.test(line))).toEqual([]);
    expect(/"user":/.test(readFileSync(join(dir, 'events.ndjson'), 'utf8'))).toBe(true);
    expect(delivered()).toHaveLength(265);
  });

  test('follows a running process, from now on, and shows events that pass its routes', async () => {
    const { config, delivered, dir, sandbox } = await aSetup({ more: routes });
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('"running"');
    await waitUntil(() => count(delivered) === 225, { what: '225 events' });
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

    // A machine with much to do may let some go by.
    const more = () => {
      sandbox.control.grow(auditPath, 1);
      return tap.stdout.length >= 19;
    };
    await waitUntil(more, { what: 'what came since', everyMs: 100 });

    const { exitCode } = await tap.kill('SIGINT');
    await sluice.kill();
    const written = readFileSync(join(dir, 'events.ndjson'), 'utf8').trim().split('\n');
    const shown = new Set(tap.stdout);
    expect(exitCode).toBe(0);
    expect(tap.stdout).toEqual(written.filter((line) => shown.has(line)));
  });

  test('beside an archive: shows the archive’s own events, and no response that is no event', async () => {
    const place = tempDir();
    writeFileSync(join(place, 'key'), signingKeyText('archive.test', Buffer.alloc(32, 1)));
    const { config, dir, sandbox } = await aSetup({
      more: [
        `  proof: { type: archive, location: ${place}/archive, signing_key: "\${file:${place}/key}", checkpoint_every: 100ms }`,
        'routes:',
        '  - { from: [audit], to: [disk, proof] }',
      ],
    });
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('"running"');
    const tap = startSluice(['tap', '-c', config]);
    const ofAudit = startSluice(['tap', '-c', config, '--source', 'audit']);
    await Promise.all([tap, ofAudit].map((one) => one.waitForLine('following process')));
    const reported = (lines: readonly string[]) =>
      lines.some((line) => line.includes('archive.checkpoint'));
    await waitUntil(
      () => {
        sandbox.control.grow(auditPath, 1);
        return reported(tap.stdout) && ofAudit.stdout.length > 0;
      },
      { what: 'a checkpoint on the screen' },
    );
    await Promise.all([tap.kill(), ofAudit.kill()]);
    await sluice.kill();

    const file = readFileSync(join(dir, 'events.ndjson'), 'utf8');
    const uidOf = (line: string) => JSON.parse(line).metadata.uid as string;
    const uids = new Set(file.split('\n').slice(0, -1).map(uidOf));
    expect([...tap.stdout, ...ofAudit.stdout].filter((line) => !uids.has(uidOf(line)))).toEqual([]);
    expect(reported(ofAudit.stdout)).toBe(false);
  });

  test.each([
    { flag: ['--source', 'audti'], says: 'did you mean audit?' },
    { flag: ['--sink', 'dsik'], says: 'did you mean disk?' },
    { flag: ['--format', 'otel'], says: 'known: json, cef, leef, syslog, ecs, gelf' },
  ])('$flag is a usage error', async ({ flag, says }) => {
    const { config } = await aSetup();

    const { stderr, exitCode } = await runHere(['tap', '-c', config, ...flag]);

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
