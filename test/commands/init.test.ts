// `sluice init`: what it writes passes `check`, whatever was answered, and it neither overwrites nor writes a secret.

import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sinks } from '../../connectors/index.ts';
import { check } from '../../src/commands/check.ts';
import { answersTo, type InitOptions, init, saysAll } from '../../src/commands/init.ts';
import { readConfig } from '../../src/config/config.ts';
import { received } from '../run/run-command.ts';
import { runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const secrets = {
  EDGE_CLIENT_ID: 'an-id',
  EDGE_CLIENT_SECRET: 'a-secret',
  OPS_CLIENT_ID: 'an-id',
  OPS_CLIENT_SECRET: 'a-secret',
};
const unified = 'https://api.example.com/v1';
const services = 'https://svc.example.com';

async function written(options: Omit<InitOptions, 'config'>) {
  const config = join(tempDir(), 'sluice.yaml');
  const { out, code } = await received((deps) => init.run({ config, ...options }, deps));
  expect(code).toBe(0);
  return { config, out, text: readFileSync(config, 'utf8') };
}

describe('the output of init', () => {
  test.each(sinks.map(({ type }) => type))(
    'passes check with a %s sink, with nothing noted',
    async (sink) => {
      const { config, text } = await written({ unified, sink });
      const names = [...text.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => [name, 'x']);
      const secrets = Object.fromEntries(names);
      const key = join(dirname(config), 'key');
      writeFileSync(key, 'x');
      writeFileSync(config, text.replaceAll(/\$\{file:[^}]+\}/g, `\${file:${key}}`));

      const { code, out } = await received((deps) => check.run({ config }, deps), secrets);

      expect(code).toBe(0);
      expect(out.join('\n')).toContain(`sink ${sink === 'stdout' ? 'screen' : sink}: `);
      expect(readConfig(config, { env: secrets }).notices).toEqual([]);
    },
  );

  test('reads both APIs where both are named, with logs and every company', async () => {
    const logs = '/api/logs/v1/companies/{company_id}/events';
    const { config } = await written({ unified, services, companies: 'c-1, c-2', logs });

    const { sources, upstreams, status } = readConfig(config, { env: secrets });

    expect(Object.keys(sources)).toEqual(['audit', 'logs', 'firewall']);
    expect(sources.logs?.settings.path).toBe(logs);
    expect(upstreams.ops?.companies).toEqual(['c-1', 'c-2']);
    expect(status).toMatchObject({ host: '127.0.0.1', port: 8686 });
  });

  test('allows plain http only if requested, which the config reader accepts on loopback alone', async () => {
    const { text } = await written({ unified: 'http://127.0.0.1:8080/v1' });

    expect(text).toContain('allow_http: true');
    expect((await written({ unified })).text).not.toContain('allow_http');
    await expect(written({ unified: 'http://api.example.com/v1' })).rejects.toThrow(
      /--unified: .*https/,
    );
  });

  test('keeps each answer a value, whatever it holds', async () => {
    const to = './out/"\nsinks: { evil: { type: stdout } } #\u2028.ndjson';
    const { config } = await written({ unified, sink: 'file', to });

    const { sinks } = readConfig(config, { env: secrets });

    expect(Object.keys(sinks)).toEqual(['file']);
    expect(sinks.file?.settings.path).toBe(to);
  });

  test('names secrets and holds none, and says how to provide them', async () => {
    const fromEnvironment = await written({ unified });
    const fromFiles = await written({ unified, secrets: '/run/secrets/' });

    expect(fromEnvironment.text).toContain('client_secret: "${env:EDGE_CLIENT_SECRET}"');
    expect(fromEnvironment.out.join('\n')).toContain('export EDGE_CLIENT_SECRET=');
    expect(fromFiles.text).toContain('client_secret: "${file:/run/secrets/edge_client_secret}"');
    expect(fromFiles.out.join('\n')).toContain('/run/secrets/edge_client_secret');
    expect(fromFiles.out.join('\n')).toContain(`npx sluice check -c ${fromFiles.config} --connect`);
  });
});

describe('on a terminal', () => {
  test('prompts again after a wrong answer, explains why, and repeats none of the answer', async () => {
    const answers = [
      'hunter2',
      unified,
      '',
      'hunter2',
      '/run/secrets',
      'syslg',
      'syslog',
      'hunter2',
    ];
    answers.push('tls://siem.example:6514');
    const questions: string[] = [];
    const said: string[] = [];
    const ask = async (question: string) => {
      questions.push(question);
      return answers.shift() ?? '';
    };

    const given = await answersTo(
      { config: 'x' },
      { again: true, ask },
      { env: {}, err: (line) => said.push(line) },
    );

    expect(given).toMatchObject({ unified, services: null, secrets: '/run/secrets' });
    expect(given).toMatchObject({ sink: { type: 'syslog' }, to: 'tls://siem.example:6514' });
    expect(said).toHaveLength(4);
    expect(said.join('\n')).toMatch(/did you mean syslog/);
    expect([...said, ...questions].join('\n')).not.toContain('hunter2');
    expect(questions).toHaveLength(9);
  });

  test('prompts only for values that no flag has, and offers defaults', async () => {
    const questions: string[] = [];
    const ask = async (question: string) => {
      questions.push(question);
      return '';
    };

    const given = await answersTo(
      { config: 'x', unified, services, companies: 'c-1', logs: '/l', secrets: '/s' },
      { again: true, ask },
      { env: {}, err: () => undefined },
    );

    expect(questions.map((question) => question.split(/[ :]/)[0])).toEqual([
      'Scope',
      'Where',
      'the',
    ]);
    expect(given).toMatchObject({ sink: { type: 'file' }, to: './out/events.ndjson' });
    expect(given.scope).toBe('urn:vendor:api:public');
  });
});

describe('on the real program', () => {
  test('a file that is there stays as it is, unless --force says otherwise', async () => {
    const config = join(tempDir(), 'mine.yaml');
    writeFileSync(config, 'mine');

    const refused = await runSluice(['init', '-c', config]);
    const kept = readFileSync(config, 'utf8');
    const forced = await runSluice(['init', '-c', config, '--unified', unified, '--force']);

    expect(refused).toMatchObject({ exitCode: 64, stdout: '' });
    expect(refused.stderr).toContain('--force');
    expect(kept).toBe('mine');
    expect(forced.exitCode).toBe(0);
    expect(readFileSync(config, 'utf8')).toContain('audit_events');
  });

  test('a link to nowhere is a file that is there', async () => {
    const dir = tempDir();
    const config = join(dir, 'sluice.yaml');
    symlinkSync(join(dir, 'elsewhere.yaml'), config);

    await expect(received((deps) => init.run({ config, unified }, deps))).rejects.toThrow(
      '--force',
    );

    expect(existsSync(join(dir, 'elsewhere.yaml'))).toBe(false);
  });

  test.each([
    { flags: [], says: '--services: one of the two APIs has to be read: give this, or --unified' },
    { flags: ['--services', services], says: '--companies: is required' },
    { flags: ['--unified', unified, '--sink', 'syslg'], says: 'syslog' },
    { flags: ['--unified', unified, '--sink', 'kafka', '--to', 'k1'], says: '--to: ' },
  ])(
    'without a terminal $flags is a usage error, and nothing is written',
    async ({ flags, says }) => {
      const config = join(tempDir(), 'sluice.yaml');

      const { stderr, exitCode } = await runSluice(['init', '-c', config, ...flags]);

      expect(exitCode).toBe(64);
      expect(stderr).toContain(says);
      expect(existsSync(config)).toBe(false);
    },
  );
});

test.each<[Omit<InitOptions, 'config'>, boolean]>([
  [{ unified, sink: 'syslog', to: 'tcp://127.0.0.1:15514' }, true],
  [{ services, companies: 'c-1', sink: 'file' }, true],
  [{ services, sink: 'file' }, false],
  [{ unified }, false],
  [{ sink: 'file' }, false],
])('the flags %j say it all: %s', (options, all) => {
  expect(saysAll({ config: 'c.yaml', ...options })).toBe(all);
});
