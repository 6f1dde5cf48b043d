// The effect of a hostile record or upstream on an operator's terminal: none. The real program, into a pipe and, if
// util-linux's `script` is installed, on a terminal of its own.

import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { plainText, visibleLines, visibleText } from '../../src/contracts/text.ts';
import { cleanText } from '../../src/tools/clean-text.ts';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { ask } from '../watch/a-moment.ts';

const c1 = Array.from({ length: 33 }, (_, i) => String.fromCharCode(0x7f + i)).join('');
const turning = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069';
const hostile = `a${c1}b${turning}c\u2028\u2029\ufeffd`;
const harmful = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

describe('text for people', () => {
  test('has none of the characters that steer, turn around or hide', () => {
    for (const shown of [plainText, visibleText, (text: string) => cleanText(text, 1_000)]) {
      expect(shown(`\u001b[2J${hostile}`)).not.toMatch(/[\u0000-\u001f]/);
      expect(shown(hostile)).not.toMatch(harmful);
    }
    expect(cleanText('grün 東京 🚀', 100)).toBe('grün 東京 🚀');
  });

  test('JSON keeps its meaning, and lines stay lines', () => {
    const lines = `${JSON.stringify({ a: hostile })}\n${JSON.stringify({ b: '🚀' })}\n`;

    const shown = Buffer.from(visibleLines(Buffer.from(lines))).toString();

    expect(shown).not.toMatch(harmful);
    expect(
      shown
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([{ a: hostile }, { b: '🚀' }]);
  });
});

/** An upstream with one record, whose source is refused with a code that is one of ours. */
async function hostileConfig(screen: string) {
  const record = { id: 'r-1', timestamp: '2026-01-01T00:00:00Z', action: hostile, note: hostile };
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    response.statusCode = path === '/denied' ? 403 : 200;
    response.setHeader('content-type', 'application/json');
    const denied = { error: { code: 'state_damaged', message: hostile }, request_id: 'q-1' };
    response.end(JSON.stringify(path === '/denied' ? denied : { data: [record] }));
  });
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    [
      `state: { dir: ${dir}/state }`,
      'upstreams:',
      `  edge: { api: unified, ends: never, base_url: "http://127.0.0.1:${await listen(server)}", allow_http: true, auth: { api_key: k } }`,
      'sources:',
      '  audit: { type: audit_events, upstream: edge, every: 1h }',
      '  barred: { type: audit_events, upstream: edge, every: 1h, path: /denied }',
      'sinks:',
      `  screen: { type: stdout, format: ${screen} }`,
      'status: { listen: 127.0.0.1:0 }',
    ].join('\n'),
  );
  return config;
}

const main = new URL('../../src/boot/main.ts', import.meta.url).pathname;
const hasTerminal = spawnSync('script', ['--version']).status === 0;

describe('the program', () => {
  test.each([
    ['run', 'json'],
    ['tap', 'json'],
  ])('%s into a pipe writes JSON that no pipeline can hurt its reader with', async (command) => {
    const config = await hostileConfig('json');
    const sluice = startSluice([command, '-c', config]);
    await waitUntil(() => sluice.stdout.length > 0, { what: 'the event' });
    await sluice.kill('SIGINT');

    const [line = ''] = sluice.stdout;
    expect(line).not.toMatch(harmful);
    expect(JSON.stringify(JSON.parse(line))).toContain(JSON.stringify(hostile).slice(1, -1));
  });

  test.skipIf(!hasTerminal).each(['json', 'cef', '{ type: json, schema: original }'])(
    'run on a terminal shows %s, and logs, without a character that steers it',
    async (format) => {
      const config = await hostileConfig(format);
      const command = `${process.execPath} ${main} run --once --timeout 10s -c ${config}`;
      // Its exit code says that one stream was not read.
      const shown = await promisify(execFile)('script', ['-qec', command, '/dev/null'], {
        env: { PATH: process.env.PATH, TERM: 'dumb' },
      }).catch((ended: { stdout: string }) => ended);

      expect(shown.stdout).toMatch(/r-1/);
      expect(shown.stdout).toMatch(/state_damaged/);
      expect(shown.stdout).not.toMatch(harmful);
    },
  );

  test('upstream’s code is shown as upstream’s, beside ours', async () => {
    const config = await hostileConfig('json');
    const sluice = startSluice(['run', '-c', config]);
    const line = JSON.parse(await sluice.waitForLine('is halted'));
    const url = JSON.parse(await sluice.waitForLine('"status page"')).url;
    const report = JSON.parse((await ask(`${url}/status.json`)).body);
    // Notes are written once a second.
    const status = await waitUntil(
      async () => {
        const { stdout } = await runSluice(['status', '-c', config, '--json']);
        return stdout.includes('"upstream_refused"') && stdout;
      },
      { what: 'the note of it' },
    );
    await sluice.kill();

    expect(line).toMatchObject({ code: 'upstream_refused', upstream_code: 'state_damaged' });
    expect(
      report.streams.find(({ name }: { name: string }) => name === 'barred').error,
    ).toMatchObject({
      code: 'upstream_refused',
      upstream_code: 'state_damaged',
      request_id: 'q-1',
    });
    expect(status).not.toMatch(harmful);
  });
});
