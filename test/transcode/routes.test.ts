// Filtered and redacted events by copying: as without it, line by line, and with the same failures of filters counted.

import { describe, expect, test } from 'vitest';
import { makeFormat } from '../formats/make-format.ts';
import { compare } from './differences.ts';

const context = { source: 'audit', stream: 'audit' };
const formats = {
  JSON: () => makeFormat('json'),
  'CEF in syslog': () => makeFormat('syslog', { message: 'cef' }),
  ECS: () => makeFormat('ecs'),
  OTLP: () => makeFormat('otel'),
};
const pages = Array.from({ length: 6 }, (_, page) => {
  const records = Array.from({ length: 50 }, (_, i) => {
    const n = page * 50 + i;
    const source = n % 2 === 0 ? `,"source_ip":"192.0.2.${n % 250}"` : '';
    return (
      `{"id":"e${n}","timestamp":"2026-11-23T12:34:56.789Z","action":"policy.${n % 3 ? 'update' : 'delete'}",` +
      `"actor":{"name":"ann ${n}"},"result":"${n % 5 ? 'success' : 'failure'}","note":"n${n}"${source}}`
    );
  });
  return Buffer.from(`{"data":[${records.join(',')}]}`);
});

function comparison(format: keyof typeof formats, route: { where?: string; redact?: string[] }) {
  const routes = [{ from: ['audit'], to: ['s'], ...route }];
  return compare(pages, formats[format](), context, [['timestamp']], undefined, routes);
}

describe('transcoded lines of a route are those of the ordinary path', () => {
  for (const format of Object.keys(formats) as (keyof typeof formats)[]) {
    for (const route of [
      { where: 'event.status == "Failure"' },
      { where: 'event.activity_id == 4 || has(event.http_request)' },
      { where: 'event.status_id == 1', redact: ['actor.user.name', 'unmapped'] },
      { redact: ['src_endpoint', 'metadata.original_event_uid'] },
    ]) {
      test(`nearly all of which are made so, as ${format}: ${JSON.stringify(route)}`, async () => {
        const found = await comparison(format, route);
        expect(found.differences).toEqual([]);
        expect(found.written).toBeGreaterThan(found.records * 0.9);
      });
    }

    for (const where of [
      'event.actor.user.name.endsWith("3")',
      'event.metadata.uid < "8"',
      'event.unmapped.exists(k, event.unmapped[k] == "n7")',
      'event.src_endpoint.ip != "192.0.2.4"',
    ]) {
      test(`if a filter reads a field that differs, as ${format}: ${where}`, async () => {
        expect((await comparison(format, { where })).differences).toEqual([]);
      });
    }
  }
});
