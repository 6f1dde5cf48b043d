// Which limits concern which stream, on streams as a config makes them and paths as throttles name them.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { planFrom } from '../../src/run/plan.ts';
import { budgetOf, budgetsOf } from '../../src/watch/budgets.ts';
import { aConfig, configEnv } from '../config/config-text.ts';
import { planMeans } from '../run/plan-deps.ts';

const sources =
  '  web: { type: logs, upstream: ops, path: "/api/logs/v1/companies/{company_id}/web" }\n' +
  '  fw: { type: firewall, upstream: ops }';

/** The path of the limit of each stream in the report. */
function limits(throttles: Parameters<typeof budgetsOf>[0]) {
  const config = parseConfig(aConfig({ sources }), 'c.yaml', configEnv());
  const budgets = budgetsOf(throttles);
  const entries = planFrom(config, planMeans()).sources.flatMap(({ streams }) =>
    streams.map(({ name, paths }) => [name, budgetOf(budgets, paths)?.path ?? null] as const),
  );
  return Object.fromEntries(entries);
}

const web = '/api/logs/v1/companies/{company_id}/web';
const firewall = '/api/firewall/v1/companies';
const none = { wait_ms: 0, limit: null, remaining: null };

test('a stream has the limits of its own path, of the template, and of the credential', () => {
  const own = { ...none, path: web.replace('{company_id}', 'c-1'), wait_ms: 10 };
  const template = { ...none, path: web, wait_ms: 5 };
  const policies = { ...none, path: `${firewall}/c-2/policies`, wait_ms: 7 };
  const policy = { ...none, path: `${firewall}/c-2/policies/p-1`, wait_ms: 9 };
  const all = { ...none, path: '*', wait_ms: 1 };

  expect(limits([own, template, policies, policy, all])).toEqual({
    'web/c-1': own.path,
    'web/c-2': template.path,
    'fw/c-1/objects': '*',
    'fw/c-1/policies': '*',
    'fw/c-2/objects': '*',
    'fw/c-2/policies': policy.path,
  });
});

test('without waits the smallest share left counts, and without limits there is none', () => {
  const half = { path: web, wait_ms: 0, limit: 60, remaining: 30 };
  const most = { path: '*', wait_ms: 0, limit: 1_000, remaining: 900 };

  expect(limits([half, most])).toMatchObject({ 'web/c-1': web, 'fw/c-1/objects': '*' });
  expect(limits([])).toMatchObject({ 'web/c-1': null, 'fw/c-1/objects': null });
});
