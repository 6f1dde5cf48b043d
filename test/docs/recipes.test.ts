// The syslog sinks of the recipes against receivers with the framing that each product expects: the number of messages
// equals the number of events, which the sending side could not notice otherwise.

import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { syslogSink } from '../../connectors/sinks/syslog.ts';
import { blocksOf, isConfig, pages } from '../../docs/generate/page.ts';
import { deliverAll } from '../connectors/sinks/syslog-resend.ts';
import { makeCa } from '../support/certificates.ts';
import { openSink, someEvents } from '../support/sink-opening.ts';
import { startTcpReceiver } from '../support/tcp-receiver.ts';

/** What each product's port expects, from its vendor's documents; rsyslog, before Sentinel's agent, takes both. */
const expected = [
  { recipe: 'arcsight', address: 'tcp://connector.example:514', framing: 'lf' },
  { recipe: 'google-secops', address: 'tcp://collector.example:10514', framing: 'lf' },
  { recipe: 'graylog', address: 'tcp://graylog.example:1514', framing: 'lf' },
  { recipe: 'graylog', address: 'tcp://graylog.example:5555', framing: 'lf' },
  { recipe: 'qradar', address: 'tls://qradar.example:6514', framing: 'lf' },
  { recipe: 'sentinel', address: 'tls://ama-forwarder.example:6514', framing: 'octet_counting' },
  { recipe: 'splunk', address: 'tls://sc4s.example:5425', framing: 'octet_counting' },
] as const;

interface SinkBlock {
  readonly type: string;
  readonly address: string;
  readonly framing?: string;
  readonly format?: string | { readonly type: string };
}

/** The syslog sinks over TCP or TLS of all recipes, in order. */
const reported = pages()
  .filter(({ path }) => path.startsWith('recipes/'))
  .flatMap((page) =>
    blocksOf(page)
      .filter(isConfig)
      .flatMap(({ text }) => Object.values<SinkBlock>(parse(text).sinks ?? {}))
      .filter(({ type, address }) => type === 'syslog' && /^(tcp|tls):/.test(address))
      .map((sink) => ({ recipe: /\/(.*)\.md$/.exec(page.path)?.[1] ?? '', sink })),
  );

test('each recipe with syslog over TCP or TLS says its framing, and is among those tried here', () => {
  expect(reported.map(({ recipe, sink }) => ({ recipe, address: sink.address }))).toEqual(
    expected.map(({ recipe, address }) => ({ recipe, address })),
  );
  expect(reported.filter(({ sink }) => sink.framing === undefined)).toEqual([]);
});

test.each(expected)('$recipe reads an event a message at $address', async (requested) => {
  const secure = requested.address.startsWith('tls:') ? await makeCa() : null;
  const receiver = await startTcpReceiver(secure === null ? {} : { tls: secure });
  const found = reported.find(({ sink }) => sink.address === requested.address);
  if (found === undefined) throw new Error('no such recipe');
  const { type: _, format, ...config } = found.sink;
  const address = `${secure === null ? 'tcp' : 'tls'}://127.0.0.1:${receiver.port}`;
  const tls = secure === null ? {} : { tls: { ca_file: secure.caFile } };
  const here = { ...config, address, resend_window: '50ms', ...tls };

  const opened = await openSink(syslogSink, here, format === undefined ? {} : { format });
  await deliverAll(opened, someEvents(300));

  expect(receiver.frames).toHaveLength(300);
  expect(new Set(receiver.frames.map(({ framing }) => framing))).toEqual(
    new Set([requested.framing]),
  );
  expect(receiver.faults).toEqual([]);
});
