// Mapped logs by copying, byte for byte as the ordinary path writes them: those of the sandbox, and values that are no
// longer what their attribute takes.

import { describe, expect, test } from 'vitest';
import type { Mapping } from '../../src/contracts/definition.ts';
import { logRecords } from '../../src/sandbox/log-records.ts';
import { makeFormat } from '../formats/make-format.ts';
import { compare } from './differences.ts';

const context = { source: 'logs', stream: 'logs c-1', kind: 'log', company: 'c-1' } as const;
const times = [['timestamp']];
const formats = {
  'CEF in syslog': () => makeFormat('syslog', { message: 'cef' }),
  'JSON in syslog': () => makeFormat('syslog', { message: 'json' }),
  'the record in syslog': () => makeFormat('syslog', { message: 'original' }),
  LEEF: () => makeFormat('leef'),
  ECS: () => makeFormat('ecs'),
  'ECS in syslog': () => makeFormat('syslog', { message: 'ecs' }),
  'a sentence in syslog': () => makeFormat('syslog', { message: 'text' }),
  'CEF in RFC 3164': () => makeFormat('syslog', { message: 'cef', protocol: 'rfc3164' }),
};
const flows: Mapping = {
  class: 'network_activity',
  fields: {
    'src_endpoint.ip': 'client_ip',
    'src_endpoint.mac': 'client_mac',
    'dst_endpoint.ip': 'server_ip',
    'dst_endpoint.port': 'port',
    'dst_endpoint.hostname': 'host',
    'traffic.bytes_in': 'bytes_received',
    'connection_info.protocol_name': 'protocol',
    'actor.user.email_addr': 'user',
    start_time: 'began',
    end_time: 'ended',
  },
};

function pagesOf(make: (i: number) => string): readonly Buffer[] {
  return Array.from({ length: 8 }, (_, page) => {
    const records = Array.from({ length: 50 }, (_, i) => make(page * 50 + i));
    return Buffer.from(`{"data":[${records.join(',')}]}`);
  });
}

describe('a transcoded line of a log is that of the ordinary path', () => {
  for (const [name, make] of Object.entries(formats)) {
    test(`for the sandbox's flows, nearly all of which are transcoded, as ${name}`, async () => {
      const record = logRecords('c-1', 'flow');
      const pages = pagesOf((index) =>
        record({ seed: 1, index, id: String(index), timeMs: 1_790_000_000_000 + index * 37 }),
      );
      const found = await compare(pages, make(), context, times, flows);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(found.records * 0.85);
    });
  }

  test('for records without a mapping', async () => {
    const pages = pagesOf((i) => `{"id":"e${i}","timestamp":${1_790_000_000 + i},"note":"n${i}"}`);
    for (const make of Object.values(formats)) {
      const found = await compare(pages, make(), context, times);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(found.records * 0.9);
    }
  });

  for (const [what, before, then] of [
    ['an address that is none', '"client_ip":"192.0.2.1"', '"client_ip":"n/a"'],
    ['an address that is longer', '"client_ip":"192.0.2.1"', '"client_ip":"2001:db8::1"'],
    ['an address with a zone', '"client_ip":"2001:db8::1"', '"client_ip":"fe80::1%eth0"'],
    ['an address that is a number', '"client_ip":"192.0.2.1"', '"client_ip":3221225985'],
    ['a port in a text', '"port":443', '"port":"443"'],
    ['a port that is none', '"port":"443"', '"port":"70000"'],
    ['a port that is written otherwise', '"port":"443"', '"port":"0443"'],
    ['a count below zero', '"bytes_received":5', '"bytes_received":-5'],
    ['a count that is broken', '"bytes_received":5', '"bytes_received":5.5'],
    ['a word for a count', '"bytes_received":"5"', '"bytes_received":"many"'],
    ['seconds for milliseconds', '"began":1790000000123', '"began":1790000000'],
    ['a counter for a time', '"began":1790000000', '"began":17'],
    ['a finer time', '"began":"2026-11-23T12:34:56Z"', '"began":"2026-11-23T12:34:56.123456Z"'],
    ['another zone', '"began":"2026-11-23T12:34:56Z"', '"began":"2026-11-23T12:34:56+02:00"'],
    ['no time', '"began":"2026-11-23T12:34:56Z"', '"began":"soon"'],
    ['the same time twice', '"ended":1790000000', '"ended":"2026-09-21T14:13:20Z"'],
    ['hyphens', '"client_mac":"02:00:5e:10:00:01"', '"client_mac":"02-00-5e-10-00-01"'],
    ['a name for an e-mail address', '"user":"a@b.example"', '"user":"ann"'],
    ['a list', '"host":"a"', '"host":["a","b"]'],
    ['an object', '"host":"a"', '"host":{"name":"a"}'],
    ['a number for a text', '"host":"a"', '"host":7'],
  ] as const) {
    test(`where there is ${what}`, async () => {
      const record = (i: number) =>
        `{"id":"e${i}","server_ip":"198.51.100.7","began":1790000000,${i > 200 && i % 3 === 0 ? then : before}}`;
      const once = (text: string) =>
        text.includes('"began":1790000000,"began"')
          ? text.replace('"began":1790000000,', '')
          : text;
      const pages = pagesOf((i) => once(record(i)));
      for (const make of Object.values(formats)) {
        const found = await compare(pages, make(), context, times, flows);
        expect(found.differences).toEqual([]);
        expect(found.written).toBeGreaterThan(180);
      }
    });
  }

  test("where a finding's own id becomes the record's", async () => {
    const fields = { 'finding_info.uid': 'rule', 'finding_info.title': 'title' };
    const pages = pagesOf((i) => {
      const rule = i % 5 === 0 ? `e${i % 7}` : 'r1';
      return `{"id":"e${i % 7}","title":"t","rule":"${rule}"}`;
    });
    for (const make of Object.values(formats)) {
      const mapping = { class: 'detection_finding', fields };
      const found = await compare(pages, make(), context, times, mapping);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(200);
    }
  });
});
