// The dashboard, the alert rules and the page of metrics against /metrics of a real journey: each names only existing
// metrics, and the page names them all. With promtool, if available, the rules' own tests run too.

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { openJourney } from '../../src/run/journey.ts';
import { planFrom } from '../../src/run/plan.ts';
import { openTools } from '../../src/run/tools.ts';
import { watching } from '../../src/watch/live.ts';
import { aSetup } from '../commands/a-setup.ts';
import { noLog } from '../support/plain-upstream.ts';
import { tempDir } from '../support/temp.ts';
import { aServer, ask } from '../watch/a-moment.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const rulesFile = 'deploy/prometheus/alerts.yaml';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}
const rules: readonly Rule[] = parse(read(rulesFile)).groups.flatMap(
  ({ rules }: { rules: readonly Rule[] }) => rules,
);

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const dashboard = JSON.parse(read('deploy/grafana/dashboard.json'));
const panels: readonly Panel[] = dashboard.panels;
const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** Kind and labels by name. */
const served = new Map<string, { readonly kind: string; readonly labels: readonly string[] }>();
beforeAll(async () => {
  const route = '[{ from: [audit], to: [disk], where: "event.severity_id >= 0" }]';
  const { config: file } = await aSetup({ more: [`routes: ${route}`], ends: '2199-12-31' });
  const config = readConfig(file, { env: {} });
  const tools = openTools(noLog);
  const plan = planFrom(config, tools);
  const journey = await openJourney(plan, config.state, tools);
  try {
    await journey.pipeline.once(new AbortController().signal, 10_000);
    const { state } = config;
    const seen = watching({ plan, state, ...journey, clock: tools.clock, log: noLog });
    const look = () => ({ ...seen(), logLinesLost: 0 });
    const server = await aServer(look);
    const { body } = await ask(`${server.url}/metrics`);
    await server.close();
    for (const [, name = '', kind = ''] of body.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
      const [, labels = ''] = new RegExp(`^${name}\\{(.*)\\} `, 'm').exec(body) ?? [];
      const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label);
      served.set(name, { kind, labels: names });
    }
    // There is none of these in a journey in which all goes well; test/watch/metrics.test.ts has its labels.
    served.set('sluice_source_conditions_total', {
      kind: 'counter',
      labels: ['condition', 'stream'],
    });
    // Nor of lines that are copied, since what is filtered is not; the same test has these.
    served.set('sluice_transcoder_events_total', { kind: 'counter', labels: ['source', 'result'] });
    // Nor of settled positions before the state is read again; the same test has these.
    const streams = { kind: 'gauge', labels: ['source', 'stream'] };
    served.set('sluice_stream_up_to_timestamp_seconds', streams);
    served.set('sluice_sink_up_to_timestamp_seconds', { kind: 'gauge', labels: ['sink'] });
    // Nor of pairs; test/succession/brake.test.ts has these.
    served.set('sluice_succession_held', { kind: 'gauge', labels: ['source', 'successor'] });
    // Nor of deliveries; test/webhooks has these.
    served.set('sluice_stream_deliveries_total', {
      kind: 'counter',
      labels: ['source', 'stream', 'result'],
    });
  } finally {
    await journey.close();
  }
});

test('the page of metrics names all that is served, as it is, and no more', () => {
  const rows = read('docs/metrics.md').matchAll(/^\| `(sluice_\w+)` \| (\w+) \| (.*?) \|/gm);
  const reported = Array.from(rows, ([, name = '', kind = '', labels = '']) => [
    name,
    { kind, labels: [...(labels.match(/\w+/g) ?? [])] },
  ]);

  expect(Object.fromEntries(reported)).toEqual(Object.fromEntries(served));
});

describe.each([
  ['the alert rules', rules.map(({ expr }) => expr)],
  ['the dashboard', queries],
  ['the pages', [read('docs/metrics.md'), read('docs/operating.md')]],
])('%s', (_, texts) => {
  test('name only metrics that are served', () => {
    const named = texts.flatMap((text) => text.match(/\bsluice_[a-z_]+/g) ?? []);

    expect(named.length).toBeGreaterThan(1);
    expect(named.filter((name) => !served.has(name))).toEqual([]);
  });
});

test('the dashboard shows every metric', () => {
  const shown = new Set(queries.flatMap((query) => query.match(/\bsluice_[a-z_]+/g) ?? []));

  // Where a stream or sink stands says nothing by itself.
  const left = [...served.keys()].filter((name) => !shown.has(name));
  expect(left).toEqual(['sluice_stream_checkpoint_timestamp_seconds', 'sluice_sink_position']);
});

test('the dashboard’s legends name labels that its metrics have', () => {
  for (const { targets } of panels) {
    for (const { expr, legendFormat } of targets) {
      const [first = ''] = expr.match(/\bsluice_[a-z_]+/) ?? [];
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        expect([expr, served.get(first)?.labels]).toEqual([expr, expect.arrayContaining([label])]);
      }
    }
  }
});

test('the dashboard’s panels have ids of their own and do not overlap', () => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
  );

  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
});

test('each alert has its severity, and leads to the next step', () => {
  const headings = [...read('docs/operating.md').matchAll(/^### (Sluice\w+)$/gm)].map(([, h]) => h);

  expect(headings).toEqual(rules.map(({ alert }) => alert));
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning']).toContain(labels.severity);
    expect(annotations).toEqual({
      summary: expect.stringMatching(/\S/),
      description: expect.stringMatching(/\S/),
      runbook: `docs/operating.md#${alert.toLowerCase()}`,
    });
  }
});

test('each alert has a test that raises it and one that does not', () => {
  const suites = parse(read('deploy/prometheus/alerts.test.yaml')).tests;
  const names = (raised: boolean) =>
    new Set(
      suites.flatMap(({ alert_rule_test: cases }: { alert_rule_test: readonly Case[] }) =>
        cases
          .filter((one) => (one.exp_alerts !== undefined) === raised)
          .map((one) => one.alertname),
      ),
    );
  const alerts = new Set(rules.map(({ alert }) => alert));

  expect(names(true)).toEqual(alerts);
  expect(names(false)).toEqual(alerts);
});

test('each alert that a test expects has the texts of its rule', () => {
  const suites = parse(read('deploy/prometheus/alerts.test.yaml')).tests;
  const cases: readonly Case[] = suites.flatMap(
    ({ alert_rule_test: own }: { alert_rule_test: readonly Case[] }) => own,
  );
  for (const { alertname, exp_alerts: expected = [] } of cases) {
    const { annotations = {}, labels } = rules.find(({ alert }) => alert === alertname) ?? {};
    for (const { exp_annotations: texts, exp_labels } of expected) {
      expect(exp_labels.severity).toBe(labels?.severity);
      for (const [name, text] of Object.entries(annotations)) {
        const parts = text.split(/\{\{.*?\}\}/).map((part) => RegExp.escape(part));
        expect(texts[name]).toMatch(new RegExp(`^${parts.join('.*')}$`));
      }
    }
  }
});

interface Case {
  readonly alertname: string;
  readonly exp_alerts?: readonly {
    readonly exp_labels: Readonly<Record<string, string>>;
    readonly exp_annotations: Readonly<Record<string, string>>;
  }[];
}

const promtool = spawnSync('promtool', ['--version']);
describe.skipIf(promtool.status !== 0)('promtool (skipped where there is none)', () => {
  const run = (...args: readonly string[]) => spawnSync('promtool', args, { encoding: 'utf8' });

  test('the rules’ tests pass', () => {
    const { status, stdout } = run(
      'test',
      'rules',
      join(root, 'deploy/prometheus/alerts.test.yaml'),
    );

    expect([status, stdout]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });

  test('the scrape config is one', () => {
    const file = join(root, 'deploy/prometheus/scrape.yaml');

    expect(run('check', 'config', '--syntax-only', file)).toMatchObject({ status: 0 });
  });

  test('the dashboard’s queries are PromQL', () => {
    const plain = queries.map((query) =>
      query.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
    );
    const file = join(tempDir(), 'queries.yaml');
    const asRules = plain.map((expr, i) => ({ record: `panel:${i}`, expr }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: asRules }] }));

    const { status, stdout, stderr } = run('check', 'rules', file);

    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`${queries.length} rules found`);
  });
});
