// What holds for every format in the list, in every shape it can be configured in.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formats } from '../../formats/index.ts';
import { anEvent } from '../support/an-event.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { documentOf, makeFormat } from './make-format.ts';

const shapes: readonly (readonly [type: string, settings: Readonly<Record<string, unknown>>])[] = [
  ['json', {}],
  ['json', { raw_data: true }],
  ['json', { schema: 'original' }],
  ['leef', {}],
  ['syslog', { message: 'leef', max_message: 700 }],
  ['gelf', {}],
  ['gelf', { host: 'h' }],
  ['ecs', {}],
  ['ecs', { raw_data: true }],
  ['cef', {}],
  ['cef', { unmapped: true, replace_pipe: true }],
  ['syslog', {}],
  ['syslog', { protocol: 'rfc3164' }],
  ['syslog', { message: 'cef' }],
  ['syslog', { message: 'cef', protocol: 'rfc3164' }],
  ['syslog', { message: 'ecs', max_message: 700 }],
  ['syslog', { message: 'text', max_message: 480 }],
  ['syslog', { message: 'original' }],
  ['syslog', { message: { type: 'json', raw_data: true }, max_message: 700, bom: true }],
  ['parquet', {}],
  ['otel', {}],
  ['otel', { raw_data: true, body: 'json' }],
  ['otel', { body: 'message' }],
  ['otel', { encoding: 'json' }],
  ['otel', { encoding: 'json', body: 'message' }],
  ['otel', { encoding: 'json', raw_data: true, body: 'json' }],
];

test('formats lists each type once, with a summary and described fields', () => {
  const types = formats.map((format) => format.type);

  expect(new Set(types).size).toBe(types.length);
  for (const { summary, fields } of formats) {
    expect(summary).toMatch(/\.$/);
    // A zod type carries its description, which the reference page is made of.
    for (const field of Object.values(fields)) expect(field).toHaveProperty('description');
  }
});

test('formats covers every listed type in these tests', () => {
  expect(new Set(shapes.map(([type]) => type))).toEqual(new Set(formats.map(({ type }) => type)));
});

describe.each(shapes)('format %s %j', (type, settings) => {
  const format = makeFormat(type, settings);

  test('encodes any event, without CR or LF unless it is protobuf', () => {
    fc.assert(
      fc.property(fc.oneof(weirdEvent, hostileEvent), (event) => {
        const encoded = format.encode(event);

        if (format.contentType === 'application/x-protobuf')
          expect(encoded.length).toBeGreaterThan(0);
        else expect(Buffer.from(encoded).toString('latin1')).not.toMatch(/[\r\n]/);
      }),
      { numRuns: 60 },
    );
  });

  test('is pure: the same event twice gives the same', () => {
    fc.assert(
      fc.property(hostileEvent, (event) => {
        expect(format.encode(event)).toEqual(format.encode(event));
      }),
      { numRuns: 20 },
    );
  });

  if (format.document) {
    test('documents of many events hold as much as their events alone', () => {
      const events = [anEvent({ offset: 1 }), anEvent({ offset: 2 })];

      const text = Buffer.from(documentOf(format, events) ?? []).toString('latin1');

      for (const { uid } of events) expect(text).toContain(uid);
    });
  }
});

test('formats does not load the OpenTelemetry packages until an otel format is made', () => {
  const index = fileURLToPath(new URL('../../formats/index.ts', import.meta.url));
  const script = `
    const { createRequire } = await import('node:module');
    const { formats } = await import(${JSON.stringify(index)});
    const loaded = () => Object.keys(createRequire(${JSON.stringify(index)}).cache).some((path) => path.includes('@opentelemetry'));
    const before = loaded();
    formats.find((format) => format.type === 'otel').make({ encoding: 'json', body: 'map', raw_data: false, resource: {} });
    console.log(JSON.stringify([before, loaded()]));`;

  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });

  expect(run.stdout.trim(), run.stderr).toBe('[false,true]');
});
