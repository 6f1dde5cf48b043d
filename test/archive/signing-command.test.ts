// A signing key that sluice never has: a command signs with it, here openssl. A failure is reported to the operator,
// moves nothing and shows no secret; and an archive can be rotated to this key, and back.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { archiveSink } from '../../connectors/sinks/archive.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Batch, Sink } from '../../src/contracts/sink.ts';
import { aSetup, auditPath } from '../commands/a-setup.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { openSink, parseSettings, someEvents, testTools } from '../support/sink-opening.ts';
import { patienceMs, tempDir, waitUntil } from '../support/temp.ts';

const origin = 'hsm.test/2026';
const pin = 'pin-4711';
const never = new AbortController().signal;

/** A signer as an operator would write one: `sign --pin=… KEY` signs what comes on stdin. */
const script = `#!/bin/sh
case "$1" in --pin=${pin}) ;; *) echo "wrong PIN in $1" >&2; exit 3;; esac
text=$(mktemp) || exit 1
trap 'rm -f "$text"' EXIT
cat > "$text"
openssl pkeyutl -sign -rawin -inkey "$2" -in "$text" | \${3:-cat}
`;

/** A signer with a key of its own. */
async function aToken() {
  const dir = tempDir();
  const [sign, key, pem] = [join(dir, 'sign'), join(dir, 'key.pem'), join(dir, 'public.pem')];
  writeFileSync(sign, script, { mode: 0o755 });
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key], { stdio: 'ignore' });
  execFileSync('openssl', ['pkey', '-in', key, '-pubout', '-out', pem]);
  const shown = await runHere(['archive', 'keys', 'show', pem, '--origin', origin]);
  return { sign, key, vkey: shown.stdout.trim(), run: [sign, `--pin=${pin}`, key] };
}

function send(sink: Sink, batch: Batch) {
  const answer = sink.send(batch, never);
  sink.flush?.();
  return answer;
}

test.each([
  ['as 64 bytes', 'cat'],
  ['in base64', 'base64'],
])('a command signs, and gives the signature %s', async (_, form) => {
  const { run, vkey } = await aToken();
  const location = join(tempDir(), 'archive');
  const command = { run: [...run, form], public_key: vkey };
  const { sink, batch } = await openSink(archiveSink, { location, signing_key_command: command });

  expect(await send(sink, batch(someEvents(3)))).toEqual({ outcome: 'delivered' });
  await sink.close();

  const verified = await runHere(['archive', 'verify', location, '--key', vkey]);
  expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
});

const retry = { outcome: 'retry', cause: { code: 'sink_unreachable' } };
const refused = { outcome: 'refused', scope: 'sink', cause: { code: 'sink_refused' } };

test.each([
  [
    'fails',
    ['/bin/sh', '-c', 'echo "the token is away" >&2; exit 7'],
    retry,
    /exit code 7: the token is away$/,
  ],
  [
    'has its PIN refused',
    ['SIGN', '--pin=0815', 'KEY'],
    retry,
    /exit code 3: wrong PIN in \[hidden\]$/,
  ],
  ['takes too long', ['/bin/sh', '-c', 'sleep 600 & wait'], retry, /it ran longer than 1s$/],
  ['is killed', ['/bin/sh', '-c', 'kill -9 $$'], retry, /ended by SIGKILL$/],
  ['is not there', ['/nowhere/sign'], refused, /cannot be started: ENOENT$/],
  ['writes nothing', ['/bin/true'], refused, /its output is no signature: 0 bytes/],
  [
    'writes what is no signature',
    ['/bin/sh', '-c', 'head -c 64 /dev/zero'],
    refused,
    /not one of the public key hsm/,
  ],
  [
    'writes without end',
    ['/bin/sh', '-c', 'yes | head -c 9000000'],
    refused,
    /no signature: 4096 bytes/,
  ],
  [
    'signs another text',
    ['/bin/sh', '-c', '(cat; echo) | SIGN --pin=PIN KEY'],
    refused,
    /not one of the public key hsm/,
  ],
])(
  'a command that %s signs nothing, and waiting pages are signed once it is repaired',
  {
    timeout: patienceMs,
  },
  async (_, broken, outcome, text) => {
    const { sign, key, vkey, run } = await aToken();
    const location = join(tempDir(), 'archive');
    const filled = broken.map((part) =>
      part.replace('SIGN', sign).replace('KEY', key).replace('=PIN', `=${pin}`),
    );
    const settings = (by: readonly string[], timeout = '1h') => ({
      location,
      signing_key_command: { run: by, public_key: vkey, timeout },
    });
    const wrong = settings(filled, broken.includes('sleep 600 & wait') ? '1s' : '1h');
    const before = await openSink(archiveSink, wrong);

    const answer = await send(before.sink, before.batch(someEvents(3)));
    const probing = archiveSink.probe(parseSettings(archiveSink, wrong), testTools(), never);
    await expect(probing).rejects.toThrow(text);
    await before.sink.close();
    expect(existsSync(join(location, 'checkpoint'))).toBe(false);
    const { sink, batch } = await openSink(archiveSink, settings(run));
    const repaired = await send(sink, batch(someEvents(3)));

    expect(answer).toMatchObject(outcome);
    expect('cause' in answer && answer.cause.message).toMatch(text);
    expect(repaired).toEqual({ outcome: 'delivered' });
    await sink.close();
    expect(await runHere(['archive', 'verify', location, '--key', vkey])).toMatchObject({
      exitCode: 0,
    });
  },
);

test.each([
  ['neither key', [], /has no signing_key/],
  ['both', ['signing_key: a', `signing_key_command: { run: [a], public_key: b }`], /both set/],
  ['an empty command', ['signing_key_command: { run: [], public_key: b }'], /run/],
])('a config with %s is refused', async (_, keys, text) => {
  const { config } = await aSetup({
    sinks: [`  proof: { ${['type: archive', 'location: a', ...keys].join(', ')} }`],
  });

  expect(() => readConfig(config)).toThrow(text);
});

test('the program signs by a command, is handed on to it and back, and shows no secret', {
  timeout: 3 * patienceMs,
}, async () => {
  const { sign, key, vkey } = await aToken();
  const dir = tempDir();
  const [first, last] = [join(dir, 'first.key'), join(dir, 'last.key')];
  const keysNew = async (file: string) =>
    (await runHere(['archive', 'keys', 'new', file, '--origin', origin])).stdout.trim();
  const vkeys = [await keysNew(first), vkey, await keysNew(last)];
  const location = join(dir, 'archive');
  const signedBy = (how: string) => [`  proof: { type: archive, location: ${location}, ${how} }`];
  const { config, sandbox, stateDir } = await aSetup({
    sinks: signedBy(`signing_key: "\${file:${first}}"`),
  });
  const written = readFileSync(config, 'utf8');
  const byCommand = join(dir, 'by-command.yaml');
  const command = `signing_key_command: { run: [${sign}, "--pin=\${env:PIN}", ${key}], public_key: ${vkey} }`;
  const line = signedBy(command)[0] ?? '';
  writeFileSync(
    byCommand,
    written.replace(/ {2}proof: .*/, () => line),
  );
  const env = { PIN: pin };
  const run = (file: string, more = env) =>
    runSluice(['run', '-c', file, '--once', '--timeout', '60s'], {
      env: more,
      timeoutMs: 2 * patienceMs,
    });
  const rotate = (file: string, to: string) =>
    runHere(['archive', 'keys', 'rotate', '-c', file, '--to', to], env);

  const runs = [await run(config)];
  const toCommand = await rotate(config, byCommand);
  sandbox.control.grow(auditPath, 5);
  const wrong = startSluice(['run', '-c', byCommand], { env: { PIN: 'pin-0815' } });
  const failure = 'signing with signing_key_command: exit code 3: wrong PIN in';
  const isReported = () => wrong.stderr.some((line) => line.includes(failure));
  await waitUntil(isReported, { what: 'a signature that fails' });
  const status = await runHere(['status', '-c', byCommand], env);
  await wrong.kill('SIGKILL');
  runs.push(await run(byCommand));
  const checked = await runHere(['check', '--connect', '-c', byCommand], env);
  const receiptBy = (PIN: string) =>
    runHere(['receipt', '-c', byCommand, '--sink', 'proof'], { PIN });
  const [receipt, unsigned] = [await receiptBy(pin), await receiptBy('pin-0815')];
  writeFileSync(join(dir, 'receipt'), receipt.stdout);
  const isTrue = await runHere(['receipt', 'check', join(dir, 'receipt'), '--key', vkey]);
  const fromCommand = await rotate(byCommand, last);
  writeFileSync(config, written.replace(first, last));
  sandbox.control.grow(auditPath, 5);
  runs.push(await run(config));

  expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  expect(toCommand).toMatchObject({ exitCode: 0, stdout: `${vkey}\n` });
  expect(fromCommand).toMatchObject({ exitCode: 0, stdout: `${vkeys[2]}\n` });
  expect(checked.exitCode).toBe(0);
  expect(isTrue).toMatchObject({ exitCode: 0, stderr: '' });
  expect(unsigned.stderr).toMatch(/the key of the archive proof does not sign: .*wrong PIN in/);
  expect(unsigned.stderr).toContain('not signed: ');
  const reported = [await wrong.exited, status, checked, receipt, unsigned, ...runs]
    .map((one) => one.stdout + one.stderr)
    .join('\n');
  for (const secret of [pin, 'pin-0815']) expect(reported).not.toContain(secret);
  for (const place of [stateDir, location]) {
    const files = readdirSync(place, { recursive: true, withFileTypes: true });
    const kept = files
      .filter((file) => file.isFile())
      .filter((file) => readFileSync(join(file.parentPath, file.name)).includes(pin));
    expect(kept).toEqual([]);
  }
  for (const one of vkeys) {
    const verified = await runHere(['archive', 'verify', location, '--key', one]);
    expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
    expect(verified.stdout).toContain('260 records');
  }
});
