// `sluice test` and `sluice preview`: what they say becomes of a record is what a run delivers.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test as it } from 'vitest';
import { preview } from '../../src/commands/preview.ts';
import { test } from '../../src/commands/test.ts';
import { UsageError } from '../../src/contracts/errors.ts';
import { received } from '../run/run-command.ts';
import { runHere, runOnceHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

const archive = join(import.meta.dirname, '../../config/compliance-archive.yaml');
const otel = join(import.meta.dirname, '../../config/otel.yaml');

/** A file of tests of the archive config, with these lines below `tests:`. */
function aFile(...tests: readonly string[]): string {
  const file = join(tempDir(), 'tests.yaml');
  writeFileSync(
    file,
    [`config: ${archive}`, 'tests:', ...tests.map((line) => `  ${line}`)].join('\n'),
  );
  return file;
}

const aDeletion = '{ id: evt_2, action: policy.delete, severity: high, note: "x\\u001b y" }';

async function tested(...files: readonly string[]) {
  return await received((deps) => test.run({ files }, deps));
}

describe('test', () => {
  it.each(globSync('config/tests/*.yaml'))('%s passes', async (file) => {
    const { out, code } = await tested(file);

    expect(out.join('\n')).not.toContain('FAIL');
    expect(code).toBe(0);
    expect(out.at(-1)).toMatch(/^[1-9]\d* passed, 0 failed$/);
  });

  it('reports each value that is not as expected, at its path in the file', async () => {
    const file = aFile(
      '- name: "wrong\\e[2J"',
      '  source: audit',
      `  record: ${aDeletion}`,
      '  event:',
      '    severity_id: 3',
      '    metadata.original_event_uid: evt_2',
      '    unmapped: { note: "x z", more: 1 }',
      '  without: [severity, unmapped.nothing.there]',
      '  sinks:',
      '    daily: null',
      '    archive: "{\\"id\\":\\"evt_2\\"}"',
      '- { name: right, source: audit, record: {}, event: { class_uid: 0 } }',
    );

    const { out, code } = await tested(file);

    const text = out.join('\n');
    const places = text.match(/:\d+:\d+ .*/g);
    expect(code).toBe(1);
    expect(out.at(-1)).toBe('1 passed, 1 failed');
    expect(places).toEqual([
      ':7:7 event.severity_id',
      ':9:19 event.unmapped.note',
      ':9:32 event.unmapped.more',
      ':10:15 without[0]',
      ':12:7 sinks.daily',
      ':13:7 sinks.archive',
    ]);
    expect(text).toMatch(/expected +3\n +found +4/);
    expect(text).toMatch(/expected +"x z"\n +found +"x\\u001b y"/);
    expect(text).not.toContain('\u001b');
  });

  it('compares a sink’s output after its route: redacted, filtered, as text and as event', async () => {
    const record =
      '{ id: e, action: policy.delete, severity: high, actor: { id: u, email: a@b.c } }';
    const file = aFile(
      `- { name: kept, source: audit, record: ${record}, event: { actor.user.email_addr: a@b.c } }`,
      `- { name: redacted, source: audit, record: ${record}, sinks: { daily: { without: [actor.user.email_addr] } } }`,
      `- { name: missing, source: audit, record: ${record}, sinks: { daily: { event: { actor.user.email_addr: a@b.c } } } }`,
      `- { name: contains, source: audit, record: ${record}, sinks: { daily: { contains: ['"severity_id":4', 'a@b.c'] } } }`,
      '- { name: filtered, source: audit, record: { id: f }, sinks: { daily: { contains: [f] } } }',
    );

    const { out } = await tested(file);

    expect(out.filter((line) => /^ {2}\S/.test(line)).map((line) => line.trim())).toEqual([
      'ok    kept',
      'ok    redacted',
      'FAIL  missing',
      'FAIL  contains',
      'FAIL  filtered',
    ]);
    expect(out.join('\n')).toContain('sinks.daily.contains[1]');
    expect(out.join('\n')).toContain('nothing: filtered out');
  });

  it('needs no secret, and takes another config with -c', async () => {
    const config = join(tempDir(), 'other.yaml');
    const text = readFileSync(archive, 'utf8').replace('>= 3', '>= 6');
    writeFileSync(config, text);
    const file = aFile(
      `- { name: filtered, source: audit, record: ${aDeletion}, sinks: { daily: null } }`,
    );

    const other = await received((deps) => test.run({ files: [file], config }, deps));
    const own = await tested(file);

    expect(other.code).toBe(0);
    expect(own.code).toBe(1);
  });

  it('reports all errors in all files at once, and tests nothing', async () => {
    const first = aFile('- { name: a, source: adit, record: {}, event: {} }');
    const second = aFile(
      '- name: b',
      '  source: firewall',
      '  stream: firewall/c-1/object',
      "  record: '{'",
      '  evnt: {}',
      '- { name: c, source: audit, record: {} }',
    );

    await expect(tested(first, second, 'nowhere.yaml')).rejects.toMatchObject({
      code: 'config_invalid',
      message: [
        `${first}:3:16 source: unknown source; did you mean audit?`,
        `${second}:3:5 tests[0]: it expects nothing; give it event, without or sinks`,
        `${second}:6:13 tests[0].record: expected one record as JSON text, or a mapping`,
        `${second}:7:5 tests[0].evnt: unknown key; did you mean event?`,
        `${second}:8:5 tests[1]: it expects nothing; give it event, without or sinks`,
        'nowhere.yaml: the tests cannot be read: there is no such file',
      ].join('\n'),
    });
  });

  it('refuses an absent path that no event can have, which would hide a typo', async () => {
    const file = aFile(
      '- { name: a, source: audit, record: {}, without: [resources.0.name, actor.usr.email_addr] }',
      '- { name: b, source: audit, record: {}, sinks: { daily: { without: [src_endpoint.pi] } } }',
    );

    await expect(tested(file)).rejects.toMatchObject({
      code: 'config_invalid',
      message: [
        `${file}:3:71 without: no event of these sources has actor.usr; did you mean user?`,
        `${file}:4:71 sinks.daily.without: no event of these sources has src_endpoint.pi; did you mean ip?`,
      ].join('\n'),
    });
  });

  it('exits 0, 1 and 2 as commands do', async () => {
    const right = aFile('- { name: a, source: audit, record: {}, event: { class_uid: 0 } }');
    const failing = aFile('- { name: a, source: audit, record: {}, event: { class_uid: 1 } }');
    const wrong = aFile('- { name: a }');

    const codes = await Promise.all(
      [[right], [right, failing], [wrong]].map(async (files) => {
        const { exitCode } = await runHere(['test', ...files]);
        return exitCode;
      }),
    );

    expect(codes).toEqual([0, 1, 2]);
  });

  it('without a config is a usage error that says how to name one', async () => {
    const file = join(tempDir(), 'tests.yaml');
    writeFileSync(file, 'tests: [ { name: a, source: audit, record: {}, event: {} } ]');

    await expect(tested(file)).rejects.toThrow(UsageError);
    await expect(tested(file)).rejects.toThrow('give one with -c');
  });
});

describe('preview', () => {
  async function previewed(
    record: string,
    options: Omit<Parameters<typeof preview.run>[0], 'file'>,
  ) {
    const file = join(tempDir(), 'record.json');
    writeFileSync(file, record);
    return (await received((deps) => preview.run({ file, ...options }, deps))).out.join('\n');
  }

  it('shows event, uid and bytes as a run delivers them', async () => {
    const { config, dir } = await aSetup({
      sandbox: { events: 3 },
      sinks: ['cef', 'json', '{ type: json, schema: original }'].map(
        (format, i) => `  s${i}: { type: file, path: '%/${i}', format: ${format} }`,
      ),
    });
    writeFileSync(config, readFileSync(config, 'utf8').replaceAll('%', dir));
    await runOnceHere(config);
    const [cef = '', event = '', record = ''] = [0, 1, 2].map(
      (i) => readFileSync(join(dir, String(i)), 'utf8').split('\n')[0],
    );

    const shown = await previewed(record, { config });

    const { metadata } = JSON.parse(event);
    const readNow = /"logged_time": (\d+)/.exec(shown)?.[1] ?? '';
    expect(shown).toContain(`uid     ${metadata.uid}\n`);
    expect(shown).toContain(`\n${event.replace(String(metadata.logged_time), readNow)}\n`);
    expect(shown).toContain(`\n${cef}\n`);
    expect(shown.endsWith(`\n${record}`)).toBe(true);
    expect(shown).toContain(`s2 (file, json)  ${Buffer.byteLength(record)} bytes`);
  });

  it('explains why a sink gets nothing, and shows only the requested sink', async () => {
    const all = await previewed('{"id":1,"severity":"low"}', { config: archive, source: 'audit' });
    const one = await previewed('{"id":1}', { config: archive, source: 'audit', sink: 'archive' });

    expect(all).toContain('daily (http, json)  nothing: where of its route leaves the event out');
    expect(all).toContain('archive (file, json)  25 bytes');
    expect(one).not.toContain('daily');
  });

  it('shows bytes that are no text in hexadecimal', async () => {
    const shown = await previewed('{"id":"evt_1"}', { config: otel });

    const rows = [...shown.matchAll(/^[0-9a-f]{8} {2}([0-9a-f ]{47}) {2}/gm)];
    const bytes = Buffer.from(rows.map(([, row = '']) => row.replaceAll(' ', '')).join(''), 'hex');
    expect(shown).toContain(`otel (otlp, otel)  ${bytes.length} bytes of application/x-protobuf\n`);
    expect(bytes.toString('latin1')).toContain('{"id":"evt_1"}');
  });

  it('writes terminal control characters in a visible form', async () => {
    const shown = await previewed('{"id":"\\u001b[2J\\u202e\u009b"}', {
      config: archive,
      source: 'audit',
    });

    expect(shown).toContain('\\u001b[2J\\u202e\\u009b');
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  it('says of which route a filter could not judge the event', async () => {
    const config = join(tempDir(), 'other.yaml');
    const text = readFileSync(archive, 'utf8').replace(
      'event.severity_id >= 3',
      'event.unmapped.deep > 1',
    );
    writeFileSync(config, text);

    const shown = await previewed('{"id":1}', { config, source: 'audit' });

    expect(shown).toContain(
      'where could not judge the event, and so lets it pass: event.unmapped.deep > 1: No such key: deep',
    );
  });

  it.each([
    { record: '{', options: { config: otel }, says: 'is no JSON' },
    { record: '[{},{}]', options: { config: otel }, says: 'a list of 2' },
    {
      record: '{}',
      options: { config: archive },
      says: 'of which source the record is: audit, firewall',
    },
    { record: '{}', options: { config: otel, source: 'audti' }, says: 'did you mean audit?' },
    { record: '{}', options: { config: otel, sink: 'otl' }, says: 'did you mean otel?' },
  ])('$says', async ({ record, options, says }) => {
    await expect(previewed(record, options)).rejects.toThrow(says);
  });

  it('reads a record from standard input', async () => {
    const args = ['preview', '-c', otel, '-'];

    const { stdout, exitCode } = await runSluice(args, { stdin: '{"id":"from-stdin"}' });

    expect(exitCode).toBe(0);
    expect(stdout).toContain('"original_event_uid": "from-stdin"');
  });
});
