// The attacks that `sandbox --attacks` plants: each of them once a cycle, with near misses, and ordinary events around them.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ATTACKS, BLOCK, plantedAt } from '../../src/sandbox/attacks.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';

const seed = 7;
const cycle = BLOCK * 2 * (ATTACKS.length + 1);

describe('a sandbox with attacks', () => {
  let sandbox: Sandbox;
  let records: readonly { readonly [name: string]: unknown }[];

  beforeAll(async () => {
    sandbox = await startSandbox({ attacks: true, events: cycle - 3, seed, rate: 0 });
    records = [...sandbox.ledger().list('/v1/audit/events').records()].map(({ text }) =>
      JSON.parse(text),
    );
  });
  afterAll(() => sandbox.close());

  test('has whole blocks of events', () => {
    expect(records).toHaveLength(cycle);
  });

  test.each(ATTACKS)('plants %s with a near miss in one cycle', (name) => {
    const planted = Array.from({ length: cycle }, (_, index) => plantedAt(seed, index));
    const own = planted.flatMap((one, index) => (one?.attack === name ? { ...one, index } : []));

    expect(own.some(({ isAttack }) => isAttack)).toBe(true);
    expect(own.some(({ isAttack }) => !isAttack)).toBe(true);
    for (const { index, scene } of own)
      expect(records[index]).toMatchObject({ action: scene.action, resource: scene.resource });
  });

  test('approves ordinary changes of policies, rules and roles', () => {
    const ordinary = records.filter((_, index) => plantedAt(seed, index) === null);
    const changes = ordinary.filter(({ action }) => /^(policy|dlp|admin)\./.test(String(action)));

    expect(changes.length).toBeGreaterThan(20);
    for (const change of changes) expect(change.approval).toMatchObject({ state: 'approved' });
  });
});

test('a sandbox without attacks has none', async () => {
  const sandbox = await startSandbox({ events: cycle, seed, rate: 0 });
  const texts = [...sandbox.ledger().list('/v1/audit/events').records()].map(({ text }) => text);
  await sandbox.close();

  expect(texts.filter((text) => text.includes('"approval"'))).toEqual([]);
});
