// The invented data: repeatable, valid JSON of a real event's size, with the awkward ones in it,
// growing by the clock; and a firewall that changes in the ways its ledger says.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AUDIT, LOGS, OBJECTS, POLICIES, page, scan, stillSandbox, WEB } from './client.ts';

describe('audit and log records', () => {
  it('are the same for the same seed and epoch, and others for another seed', async () => {
    const now = () => Date.UTC(2026, 5, 1);
    const texts = await Promise.all(
      [1, 1, 2].map(async (seed) => {
        await using sandbox = await stillSandbox({ seed, now });
        const lists = [AUDIT, LOGS, WEB].map((path) => [...sandbox.ledger().list(path).records()]);
        return JSON.stringify(lists);
      }),
    );

    expect(texts[0]).toBe(texts[1]);
    expect(texts[0]).not.toBe(texts[2]);
  });

  it('are valid JSON with their id and a time that never falls, at any index of millions', async () => {
    await using sandbox = await stillSandbox({ events: 10_000_000 });

    fc.assert(
      fc.property(
        fc.constantFrom(AUDIT, LOGS, WEB),
        fc.integer({ min: 0, max: 9_999_998 }),
        (path, index) => {
          const list = sandbox.ledger().list(path);
          const [record, next] = [
            JSON.parse(list.textAt(index)),
            JSON.parse(list.textAt(index + 1)),
          ];

          expect(list.textOf(record.id)).toBe(list.textAt(index));
          expect(Date.parse(next.timestamp)).toBeGreaterThanOrEqual(
            Math.floor(Date.parse(record.timestamp) / 1000) * 1000,
          );
        },
      ),
    );
  });

  it('audit events are about 700 bytes and have the texts of real tenants', async () => {
    await using sandbox = await stillSandbox({ events: 2_000 });

    const texts = [...sandbox.ledger().list(AUDIT).records()].map((record) => record.text);

    const bytes = Buffer.byteLength(texts.join('')) / texts.length;
    expect(bytes).toBeGreaterThan(550);
    expect(bytes).toBeLessThan(850);
    for (const needed of [
      'a=b|c\\\\d\\nCEF:0',
      '"sequence":900719925',
      '"score":7.10',
      '\\u00',
      'Łukasz',
      '"failure"',
      'agent.action.approved',
    ]) {
      expect(
        texts.some((text) => text.includes(needed)),
        needed,
      ).toBe(true);
    }
  });

  it('an agent run can be followed by its run_id from proposal to execution', async () => {
    await using sandbox = await stillSandbox({ events: 400 });

    const steps = new Map<string, string[]>();
    for (const { text } of sandbox.ledger().list(AUDIT).records()) {
      const { action, run } = JSON.parse(text);
      if (run !== undefined) steps.set(run.run_id, [...(steps.get(run.run_id) ?? []), action]);
    }

    expect([...steps.values()]).toContainEqual([
      'agent.run.started',
      'agent.action.proposed',
      'agent.action.gated',
      'agent.action.approved',
      'agent.action.executed',
    ]);
  });

  it('mixed logs hold every kind', async () => {
    await using sandbox = await stillSandbox({ logs: 400 });

    const kinds = [...sandbox.ledger().list(LOGS).records()].map(
      ({ text }) => JSON.parse(text).log_type,
    );

    expect([...new Set(kinds)].toSorted()).toEqual(['dns', 'flow', 'ids', 'web']);
  });

  it('grow with the clock, three log records for one audit event, until the rate is 0', async () => {
    let nowMs = Date.UTC(2026, 5, 1);
    await using sandbox = await stillSandbox({
      now: () => nowMs,
      rate: 100,
      events: 0,
      companies: ['a', 'b', 'c'],
    });
    const sizes = () => sandbox.ledger().lists.map(({ size }) => size);

    nowMs += 60_000;
    const [audit = 0, ...logs] = sizes();
    sandbox.control.setRate(0);
    nowMs += 60_000;
    const stopped = sizes();

    expect(audit).toBe(6_000);
    expect(logs.reduce((sum, size) => sum + size)).toBe(18_000);
    expect(stopped).toEqual([audit, ...logs]);
  });

  it('records keep their text when the list grows at once or at another rate', async () => {
    let nowMs = Date.UTC(2026, 5, 1);
    await using sandbox = await stillSandbox({ now: () => nowMs, rate: 10 });
    const texts = () => [...sandbox.ledger().list(AUDIT).records()].map((record) => record.text);

    nowMs += 5_000;
    const before = texts();
    sandbox.control.grow(AUDIT, 100);
    sandbox.control.setRate(3);
    nowMs += 5_000;
    const after = texts();

    expect(before).toHaveLength(90);
    expect(after).toHaveLength(205);
    expect(after.slice(0, 90)).toEqual(before);
  });
});

describe('firewall', () => {
  it('companies share the shared objects and nothing else', async () => {
    await using sandbox = await stillSandbox();
    const [one, two] = ['c-1', 'c-2'].map((company) => sandbox.ledger().firewall(company).objects);

    const same = one?.filter((object) =>
      two?.some((other) => JSON.stringify(other) === JSON.stringify(object)),
    );

    expect(same).toHaveLength(12);
    expect(same?.every((object) => object.shared)).toBe(true);
  });

  it('serves each object once over offset pages, and policies with their rules', async () => {
    await using sandbox = await stillSandbox();
    const { objects, policies } = sandbox.ledger().firewall('c-1');

    const ids = await scan(sandbox, OBJECTS, 25);
    const listed = await page(sandbox, POLICIES);
    const detail: unknown = await page(sandbox, `${POLICIES}/pol-2`);

    expect(ids).toEqual(objects.map((object) => object.id));
    expect(ids).toContain('00103');
    expect(listed.data.map((policy) => policy.id)).toEqual(policies.map((policy) => policy.id));
    expect(listed.data[0]).not.toHaveProperty('forward_rules');
    expect(detail).toEqual(policies[1]);
  });

  it('each ordered change shows in the configuration and in the ledger', async () => {
    await using sandbox = await stillSandbox();
    const { control } = sandbox;
    const held = () => sandbox.ledger().firewall('c-1');
    const rules = () =>
      held()
        .policies.find(({ id }) => id === 'pol-1')
        ?.forward_rules.map(({ id }) => id) ?? [];
    const [first = ''] = rules();

    control.changeFirewall('c-1', { kind: 'object', op: 'add', id: 'obj-new' });
    control.changeFirewall('c-1', { kind: 'object', op: 'change', id: 'obj-1001' });
    control.changeFirewall('c-1', { kind: 'object', op: 'remove', id: 'obj-1002' });
    control.changeFirewall('c-1', { kind: 'policy', op: 'remove', id: 'pol-6' });
    control.changeFirewall('c-1', { kind: 'rule', op: 'add', policyId: 'pol-1', id: 'fr-new' });
    control.changeFirewall('c-1', { kind: 'rule', op: 'move', policyId: 'pol-1', id: first });
    control.changeFirewall('c-1', { kind: 'rule', op: 'remove', policyId: 'pol-1', id: 'fr-1-2' });

    const ids = held().objects.map(({ id }) => id);
    expect(ids).toContain('obj-new');
    expect(ids).not.toContain('obj-1002');
    expect(held().objects.find(({ id }) => id === 'obj-1001')?.description).toMatch(/^changed /);
    expect(held().policies.map(({ id }) => id)).not.toContain('pol-6');
    expect(rules()).toContain('fr-new');
    expect(rules()).not.toContain('fr-1-2');
    expect(rules()[0]).not.toBe(first);
    expect(held().changes.map(({ kind, op, id }) => `${kind} ${op} ${id}`)).toEqual([
      'object add obj-new',
      'object change obj-1001',
      'object remove obj-1002',
      'policy remove pol-6',
      'rule add fr-new',
      `rule move ${first}`,
      'rule remove fr-1-2',
    ]);
  });

  it('changes by its schedule, the same for the same seed and epoch', async () => {
    const epochMs = Date.UTC(2026, 5, 1);
    const options = { epochMs, firewallEveryS: 60, now: () => epochMs + 3 * 3_600_000 };
    await using one = await stillSandbox(options);
    await using two = await stillSandbox(options);

    const [held, same] = [one, two].map((sandbox) => sandbox.ledger().firewall('c-1'));

    expect(held?.changes).toHaveLength(180);
    expect(held).toEqual(same);
    expect(new Set(held?.changes.map(({ kind, op }) => `${kind} ${op}`)).size).toBeGreaterThan(6);
  });
});
