// The content for Elastic and OpenSearch: the files are those of the present rules, panels and index template, and each saved
// object is whole: its inner JSON is JSON, and its references resolve. That its fields can be aggregated, and that its queries
// find what was planted, is in rules-fire.test.ts.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { elasticFiles } from '../../deploy/siem/elastic/build.ts';
import { sigmaRules } from './planted-events.ts';

const dir = new URL('../../deploy/siem/elastic/', import.meta.url);
const linesOf = (file: string) =>
  readFileSync(new URL(file, dir), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

test.each([...elasticFiles()])('%s is made of the present sources', (name, text) => {
  const stored = readFileSync(new URL(name, dir), 'utf8');
  const hint = 'run deploy/siem/elastic/build.ts';
  // The linter lays JSON out in its own way.
  if (name.endsWith('.json')) expect(JSON.parse(stored), hint).toEqual(JSON.parse(text));
  else expect(stored, hint).toBe(text);
});

describe.each(['dashboards.kibana.ndjson', 'dashboards.opensearch.ndjson'])('%s', (file) => {
  const objects = linesOf(file);

  test('has each object once, and every reference resolves', () => {
    const ids = objects.map(({ type, id }) => `${type} ${id}`);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { references } of objects)
      for (const { type, id } of references) expect(ids).toContain(`${type} ${id}`);
  });

  test('uses each reference, and has no other', () => {
    for (const { attributes, references } of objects) {
      const text = JSON.stringify(attributes);
      for (const { name } of references) expect(text).toContain(name);
      const named = text.match(/panel_\d+(?=\\*")/g) ?? [];
      for (const name of named)
        expect(references).toContainEqual(expect.objectContaining({ name }));
    }
  });

  test('has JSON inside, and panels that do not overlap', () => {
    for (const { type, attributes } of objects) {
      for (const [name, value] of Object.entries(attributes))
        if (name.endsWith('JSON') || name === 'visState') JSON.parse(String(value));
      if (type !== 'dashboard') continue;
      const corners = JSON.parse(attributes.panelsJSON).map(
        ({ gridData: { x, y } }: { gridData: { x: number; y: number } }) => `${x} ${y}`,
      );
      expect(new Set(corners).size).toBe(corners.length);
    }
  });

  test('has four dashboards', () => {
    expect(objects.filter(({ type }) => type === 'dashboard')).toHaveLength(4);
  });
});

test('each detection rule is disabled, looks back by the time of reading, and has what the importer needs', () => {
  const rules = linesOf('detection-rules.ndjson');

  expect(rules).toHaveLength(sigmaRules.length + 2);
  expect(new Set(rules.map(({ rule_id }) => rule_id)).size).toBe(rules.length);
  for (const rule of rules) {
    expect(rule).toMatchObject({ enabled: false, timestamp_override: 'event.ingested' });
    expect(['low', 'medium', 'high', 'critical']).toContain(rule.severity);
    expect(rule.risk_score).toBeGreaterThan(0);
    expect(rule.threat.length).toBeGreaterThan(0);
    for (const { tactic, technique } of rule.threat) {
      expect(tactic).toMatchObject({ id: expect.stringMatching(/^TA\d{4}$/) });
      for (const { id } of technique) expect(id).toMatch(/^T\d{4}$/);
    }
    // Only these two types are used here; an importer refuses any other word.
    if (rule.type === 'query')
      expect(rule).toMatchObject({ language: 'lucene', index: ['sluice-*'] });
    else expect(rule).toMatchObject({ type: 'esql', language: 'esql' });
    expect(rule.query.length).toBeGreaterThan(10);
  }
});
