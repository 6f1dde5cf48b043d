// Residency labels: which routes are refused, and where the error is.

import { expect, test } from 'vitest';
import { aConfig, flawLines } from './config-text.ts';

const upstream = (name: string, label: string) =>
  `  ${name}: { api: unified, base_url: "https://${name}.example/v1", auth: { api_key: k }${label} }`;

function flawsOf(labels: { eu?: string; us?: string; lake?: string; siem?: string }, routes = '') {
  const written = (label = '') => (label === '' ? '' : `, residency: ${label}`);
  return flawLines(
    aConfig({
      upstreams: `${upstream('eu', written(labels.eu))}\n${upstream('us', written(labels.us))}`,
      sources:
        '  here: { type: audit_events, upstream: eu }\n  there: { type: audit_events, upstream: us }',
      sinks: `  lake: { type: stdout${written(labels.lake)} }\n  siem: { type: file, path: a.ndjson${written(labels.siem)} }`,
      ...(routes === '' ? {} : { top: `routes: [${routes}]` }),
    }),
  );
}

const toLake = '{ from: [here], to: [lake] }';
const toSiem = '{ from: [there], to: [siem] }';

test.each([
  ['no label', {}, ''],
  ['an upstream alone', { eu: 'eu' }, ''],
  ['a sink alone', { lake: 'eu' }, ''],
  ['the same labels', { eu: 'eu', us: 'eu', lake: 'eu', siem: 'eu' }, ''],
  ['separate routes', { eu: 'eu', us: 'us', lake: 'eu', siem: 'us' }, `${toLake}, ${toSiem}`],
])('%s is allowed', (_, labels, routes) => {
  expect(flawsOf(labels, routes)).toEqual([]);
});

test('without routes every sink gets every source, and each wrong pair is reported at the sink', () => {
  expect(flawsOf({ eu: 'eu', us: 'us', lake: 'eu' })).toEqual([
    expect.stringContaining(
      'sinks.lake.residency: this sink has residency eu, and gets events of source there from upstream us with residency us; remove the route from there to lake, or correct a label',
    ),
  ]);
});

test('a route between two labels is refused', () => {
  const wrong = '{ from: [here, there], to: [lake] }';

  expect(flawsOf({ eu: 'eu', us: 'us', lake: 'eu', siem: 'us' }, `${wrong}, ${toSiem}`)).toEqual([
    expect.stringContaining('source there from upstream us'),
  ]);
});

test('a successor that no route names follows its predecessor into another label', () => {
  const flaws = flawLines(
    aConfig({
      upstreams: `${upstream('old', ', residency: eu')}\n${upstream('new', ', residency: us')}`,
      sources:
        '  before: { type: audit_events, upstream: old }\n' +
        '  after: { type: audit_events, upstream: new, succeeds: { source: before, id: id } }',
      sinks: '  lake: { type: stdout, residency: eu }',
      top: 'routes: [{ from: [before], to: [lake] }]',
    }),
  );

  expect(flaws).toEqual([expect.stringContaining('source after from upstream new')]);
});

test('a label is lower-case', () => {
  expect(flawsOf({ eu: 'EU' })).toEqual([expect.stringContaining('expected a label such as eu')]);
});
