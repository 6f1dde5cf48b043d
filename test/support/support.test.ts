// That the small helpers keep what they promise: directories go away, waits fail with a reason,
// servers do not outlive what started them, the program can be run, the certificates are what they say.
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { makeCa, makeUntrustedCa } from './certificates.ts';
import { endChild, isRunning, spawnChild } from './children.ts';
import { runSluice, startSluice } from './cli.ts';
import { LinesFile } from './lines-file.ts';
import { sharedPath } from './shared.ts';
import { freePort, freePorts, tempDir, waitUntil } from './temp.ts';

describe('tempDir', () => {
  const made: string[] = [];

  test('makes a directory', () => {
    const dir = tempDir();
    made.push(dir);
    mkdirSync(join(dir, 'inside'));

    expect(existsSync(dir)).toBe(true);
  });

  test('removes it when the test has ended', () => {
    expect(made.map((dir) => existsSync(dir))).toEqual([false]);
  });
});

describe('waitUntil', () => {
  test('resolves to the condition’s value', async () => {
    let looks = 0;

    const value = await waitUntil(() => (++looks < 3 ? null : 'here'), { what: 'it' });

    expect(value).toBe('here');
    expect(looks).toBe(3);
  });

  test('rejects in time and names the condition', async () => {
    const waiting = waitUntil(() => false, { what: () => 'the impossible', timeoutMs: 30 });

    await expect(waiting).rejects.toThrow('waited 30 ms for the impossible');
  });

  test('rejects with the condition’s error', async () => {
    const waiting = waitUntil(
      () => {
        throw new Error('broken');
      },
      { what: 'it' },
    );

    await expect(waiting).rejects.toThrow('broken');
  });
});

describe('freePort', () => {
  test('gives ports that can be listened on, outside the range of outgoing ones', async () => {
    const port = await freePort();
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();

    expect(port).toBeLessThan(32_768);
    expect(new Set(await freePorts(5)).size).toBe(5);
  });

  test('gives no port twice, not even one whose server is down', async () => {
    vi.spyOn(Math, 'random').mockReturnValueOnce(0.5).mockReturnValueOnce(0.5);

    const first = await freePort();

    expect(await freePort()).not.toBe(first);
  });
});

describe('spawnChild', () => {
  test('starts a child that can be ended and is then known to be', async () => {
    const child = spawnChild('sleep', ['60'], { stdio: 'ignore' });
    const wasRunning = isRunning(child);

    await endChild(child);

    expect([wasRunning, isRunning(child)]).toEqual([true, false]);
  });

  test('starts a child that does not outlive its parent', async () => {
    const children = fileURLToPath(new URL('children.ts', import.meta.url));
    const script = `import { spawnChild } from ${JSON.stringify(children)};
      console.log(spawnChild('sleep', ['60'], { stdio: 'ignore' }).pid);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script]);
    const [line] = await once(parent.stdout, 'data');
    const pid = Number(String(line));
    const state = () => {
      const file = `/proc/${pid}/status`;
      return existsSync(file) ? readFileSync(file, 'utf8') : 'gone';
    };
    await waitUntil(() => state().includes('sleep'), { what: 'the grandchild to have begun' });

    parent.kill('SIGKILL');

    const isGone = () => /^gone$|^State:\tZ/m.test(state()); // a zombie waits for its new parent only
    await waitUntil(isGone, { what: () => `the grandchild to end; ${state()}` });
  });
});

describe('LinesFile', () => {
  test('gives whole lines only, each parsed once', () => {
    const path = join(tempDir(), 'lines');
    const parsed: string[] = [];
    const lines = new LinesFile(path, (line) => {
      parsed.push(line);
      return line.toUpperCase();
    });

    const looks = [[...lines.read()]];
    writeFileSync(path, 'a\nb');
    looks.push([...lines.read()]);
    appendFileSync(path, 'c\nü\n');
    looks.push([...lines.read()]);

    expect(looks).toEqual([[], ['A'], ['A', 'BC', 'Ü']]);
    expect(parsed).toEqual(['a', 'bc', 'ü']);
  });
});

describe('certificates', () => {
  test('are signed by their authority, for loopback, and valid or expired as named', async () => {
    const certificates = await makeCa();
    const authority = new X509Certificate(certificates.ca);
    const foreign = new X509Certificate((await makeUntrustedCa()).ca);
    const { server, client, expired } = certificates;

    const all = [server, client, expired].map((pair) => new X509Certificate(pair.cert));
    const endsInFuture = all.map((it) => it.validToDate.getTime() > Date.now());

    expect(all.map((it) => it.verify(authority.publicKey))).toEqual([true, true, true]);
    expect(all.map((it) => it.verify(foreign.publicKey))).toEqual([false, false, false]);
    expect(all[0]?.checkIP('127.0.0.1') && all[0].checkIP('::1')).toBeTruthy();
    expect(all[0]?.checkHost('localhost')).toBe('localhost');
    expect(endsInFuture).toEqual([true, true, false]);
    expect(await makeCa()).toBe(certificates);
  });
});

describe('sharedPath', () => {
  test('is null for a missing one', () => {
    expect(sharedPath('no-such-file')).toBeNull();
  });
});

describe('runSluice', () => {
  test('runs the program of this repository and reports how it ended', async () => {
    const result = await runSluice(['--help']);

    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    expect(result.stdout).not.toBe('');
  });
});

describe('startSluice', () => {
  test('rejects a wait for a line that an ended program did not say', async () => {
    const sluice = startSluice(['--help']);

    await expect(sluice.waitForLine('no such line')).rejects.toThrow('before it said no such line');
    expect((await sluice.exited).exitCode).toBe(0);
  });
});
