// The detection rules: they are complete, the stored queries are those of the present rules, and each rule finds its planted
// attacks in OCSF events and nothing else. A conversion with pySigma is compared where Python has it; without it the stored
// queries are still run against a cluster (rules-fire.test.ts).

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  type JudgedEvent,
  judgedEvents,
  sigmaDir,
  sigmaJson,
  sigmaRules,
} from './planted-events.ts';
import { matcherOf } from './sigma-matcher.ts';

const targets = ['opensearch', 'elasticsearch', 'splunk', 'kusto'] as const;
const written = readdirSync(new URL('written/', sigmaDir)).map((file) => file.replace('.json', ''));
/** A Python with pySigma and its backends; see convert.py. */
const python = process.env.SLUICE_SIGMA_PYTHON ?? 'python3';
const convert = fileURLToPath(new URL('convert.py', sigmaDir));

function hasSigma(): boolean {
  try {
    execFileSync(python, ['-c', 'import sigma.backends.kusto'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const sigmaNote = hasSigma()
  ? ''
  : ' (skipped: no pySigma; name a Python with SLUICE_SIGMA_PYTHON)';

describe('the rules', () => {
  test('are at least twelve, each with its own id', () => {
    const ids = [
      ...sigmaRules.map((rule) => ruleOf(rule).id),
      ...written.map((name) => sigmaJson(`written/${name}.json`).id),
    ];

    expect(ids.length).toBeGreaterThanOrEqual(12);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test.each(sigmaRules)('%s has false positives, a level, a tag and a description', (name) => {
    const rule = ruleOf(name);

    expect(rule.falsepositives.length).toBeGreaterThan(0);
    expect(['low', 'medium', 'high', 'critical']).toContain(rule.level);
    expect(rule.tags).toContainEqual(expect.stringMatching(/^attack\.t\d{4}(\.\d{3})?$/));
    expect(rule.description.length).toBeGreaterThan(40);
  });

  test.each(written)('%s is written for each target', (name) => {
    const rule = sigmaJson(`written/${name}.json`);

    for (const target of ['elasticsearch', 'splunk', 'kusto'])
      expect(rule[target], target).toMatch(/\n\|/);
    expect(rule.opensearch.condition.length).toBeGreaterThan(1);
    expect(rule.falsepositives.length).toBeGreaterThan(0);
  });

  test('each have a row on the page, with their level, and no other rule has one', () => {
    const page = readFileSync(new URL('../../../docs/siem/detections.md', sigmaDir), 'utf8');
    const rows = [...page.matchAll(/^\| `(sluice_\w+)` \| (\w+) \|/gm)].map(([, ...row]) => row);
    const rules = [
      ...sigmaRules.map((name) => [name, ruleOf(name).level]),
      ...written.map((name) => [name, sigmaJson(`written/${name}.json`).level]),
    ];

    expect(rows.toSorted(), 'docs/siem/detections.md').toEqual(rules.toSorted());
  });

  test.skipIf(!hasSigma())(`convert to the stored queries${sigmaNote}`, () => {
    const out = execFileSync(python, [convert, '--check'], { encoding: 'utf8' });

    expect(out).toBe('all results are current\n');
  });
});

describe.each(targets)('the queries for %s', (target) => {
  const stored = sigmaJson(`converted/${target}.json`);

  test('are those of the present rules and pipelines', () => {
    const hash = createHash('sha256');
    for (const folder of ['pipelines', 'rules'])
      for (const file of readdirSync(new URL(`${folder}/`, sigmaDir)).toSorted())
        hash
          .update(`${folder}/${file}\n`)
          .update(readFileSync(new URL(`${folder}/${file}`, sigmaDir)));

    expect(stored.sources, 'run deploy/siem/sigma/convert.py').toBe(hash.digest('hex'));
  });

  test('are one for each rule', () => {
    expect(Object.keys(stored.rules)).toEqual(sigmaRules);
    for (const name of sigmaRules)
      expect(stored.rules[name]).toMatchObject({ id: ruleOf(name).id, level: ruleOf(name).level });
  });
});

test('no query for Kusto has a dotted name, which it would take for a text', () => {
  const { rules } = sigmaJson('converted/kusto.json');

  for (const { query } of Object.values<{ query: string }>(rules))
    expect(query).not.toMatch(/['"][\w.]+['"] *(?:=~|in~|contains|endswith|startswith|>=)/);
});

describe('on OCSF events', () => {
  let events: readonly JudgedEvent[];

  beforeAll(async () => {
    events = await judgedEvents(13_000);
  });

  test('there are 10,000 ordinary events, and near misses', () => {
    expect(events.filter(({ rule }) => rule === null).length).toBeGreaterThan(10_000);
  });

  test.each(sigmaRules)('%s finds its attacks and nothing else', (name) => {
    const matches = matcherOf(name);

    const found = events.filter(({ event }) => matches(event.ocsf)).map(({ event }) => event.uid);
    const planted = events.filter(({ rule }) => rule === name).map(({ event }) => event.uid);

    expect(planted.length, 'plant attacks in src/sandbox/attacks.ts').toBeGreaterThan(0);
    expect(found).toEqual(planted);
  });
});

function ruleOf(name: string) {
  return parse(readFileSync(new URL(`rules/${name}.yml`, sigmaDir), 'utf8'));
}
