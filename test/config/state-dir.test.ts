// Where the state is: by rule, and where an older version left it.

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stateDirOf } from '../../src/config/state-dir.ts';
import { aSetup } from '../commands/a-setup.ts';
import { runSluice } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const nothing = { env: {} };

/** Makes a directory pass for one that holds a state. */
function used(dir: string): string {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'sluice.db'), '');
  return dir;
}

describe('the state directory', () => {
  test('is relative to the config, from wherever a command is typed', () => {
    const dir = tempDir();

    const { dir: found, warning } = stateDirOf('held/here', join(dir, 'sluice.yaml'), nothing);

    expect([found, warning]).toEqual([join(dir, 'held', 'here'), null]);
    expect(stateDirOf('/var/x', join(dir, 'sluice.yaml'), nothing).dir).toBe('/var/x');
  });

  test('is beside the config where it is left out, or where systemd keeps states', () => {
    const dir = tempDir();
    const file = join(dir, 'sluice.yaml');
    const service = { env: { STATE_DIRECTORY: '/var/lib/sluice:/var/lib/more' } };

    expect(stateDirOf(undefined, file, nothing).dir).toBe(join(dir, 'state'));
    expect(stateDirOf(undefined, file, service).dir).toBe('/var/lib/sluice/state');
    expect(stateDirOf('own', file, service).dir).toBe(join(dir, 'own'));
  });

  test.skipIf(process.getuid?.() === 0)(
    'is in the working directory if the config’s cannot be written (skipped for root, who can)',
    () => {
      const dir = tempDir();
      chmodSync(dir, 0o500);

      const { dir: found, warning } = stateDirOf(undefined, join(dir, 'sluice.yaml'), nothing);

      expect(found).toBe(join(process.cwd(), 'state'));
      expect(warning).toContain('cannot be written');
    },
  );

  test('of an older version is used where it is, with a warning, as long as there is no other', async () => {
    const { dir, config } = await aSetup({ stateDir: './kept' });
    const cwd = tempDir();
    const old = used(join(cwd, 'kept'));
    const check = () => runSluice(['check', '-c', config], { cwd });

    const before = await check();
    used(join(dir, 'kept'));
    const after = await check();

    expect(before.stdout).toContain(`state in ${old}\n`);
    expect(before.stdout).toContain(`${old}, and not ${join(dir, 'kept')}: only there is one`);
    expect(after.stdout).toContain(`state in ${join(dir, 'kept')}\n`);
    expect(after.stdout).not.toContain(old);
  });
});

describe('a command without -c', () => {
  test('takes $SLUICE_CONFIG, else ./sluice.yaml, else ends with 64', async () => {
    const { dir, config } = await aSetup();
    const elsewhere = tempDir();
    const env = { SLUICE_CONFIG: config };

    const [named, here, nowhere] = await Promise.all([
      runSluice(['status', '--json'], { cwd: elsewhere, env }),
      runSluice(['status', '--json'], { cwd: dir }),
      runSluice(['status', '--json'], { cwd: elsewhere }),
    ]);

    expect([named, here].map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    expect(JSON.parse(named.stdout)).toEqual(JSON.parse(here.stdout));
    expect(nowhere).toMatchObject({ exitCode: 64, stdout: '' });
    expect(nowhere.stderr).toContain('which config? Name it with -c');
  });
});

describe('check --connect', () => {
  test('reports a state that cannot be kept, an address in use, and an address without /v1', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const { config, dir } = await aSetup({
      more: [`status: { listen: 127.0.0.1:${port} }`],
    });
    writeFileSync(join(dir, 'a-file'), '');
    const text = readFileSync(config, 'utf8');
    writeFileSync(
      config,
      text.replace(/(base_url: \S+)\/v1/, '$1').replace('/state }', '/a-file/state }'),
    );

    const { exitCode, stdout } = await runSluice(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(3);
    expect(stdout).toContain(`FAIL  state.dir: ${join(dir, 'a-file', 'state')} cannot hold`);
    expect(stdout).toContain(
      `FAIL  status.listen: 127.0.0.1:${port} cannot be used: another process`,
    );
    expect(stdout).toMatch(/note {2}upstreams\.edge: base_url \S+ does not end in \/v1/);
  });
});
