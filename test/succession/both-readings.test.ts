// Both readings of the documents: the unified API ends, or a still older one with camelCase names, integer ids, numbered pages
// and an API key. Each kind of source moves from either to the services API: shadow, differences by name, cutover, a kill.

import { expect } from 'vitest';
import { testSome } from '../support/long.ts';
import { waitUntil } from '../support/temp.ts';
import { type Forms, repeatedIn, type TwoForms, twoForms } from './two-forms.ts';

const services = '/api/logs/v1/audit';
const quick = { every: '200ms', rewind_every: '1s', reconcile_every: '1s' };
const page = { style: 'page' };

const next = { type: 'logs', upstream: 'services', path: services, ...quick };
const succeeds = (source: string) => ({
  succeeds: { source, overlap: '2h', patience: '2s' },
});

const lists: readonly (Forms & { readonly name: string; readonly path: string })[] = [
  {
    ...{ name: 'the unified API', path: '/v1/audit/events', successor: 'next' },
    old: { audit: { type: 'audit_events', upstream: 'unified', ...quick } },
    new: { next: { ...next, ...succeeds('audit') } },
  },
  {
    ...{ name: 'an older API', path: '/earlier/v1/audit/events', successor: 'next' },
    old: { audit: { type: 'audit_events', upstream: 'earlier', pagination: page, ...quick } },
    new: { next: { ...next, ...succeeds('audit') } },
  },
];

/** Ids of audit events that come next. */
function idsFrom(forms: TwoForms, count: number): readonly string[] {
  const { lists: all } = forms.sandbox.ledger();
  const size = all.find(({ path }) => path === '/v1/audit/events')?.size ?? 0;
  return Array.from({ length: count }, (_, n) => String(10_000_000 + size + n));
}

testSome(1, lists)('audit events move from $name to a list of logs', async ({ path, ...move }) => {
  const forms = await twoForms(move);
  forms.write(true);
  let sluice = await forms.run();
  await waitUntil(() => forms.delivered().length === 40, { what: 'what both have' });
  const grow = (count: number) => {
    const ids = idsFrom(forms, count);
    forms.sandbox.control.grow('/v1/audit/events', count);
    return ids;
  };
  const [onlyOld = '', onlyNew = '', differs = ''] = idsFrom(forms, 12).slice(4);
  forms.behave(
    { path: services, hidden: [onlyOld], differs: [{ id: differs, field: 'outcome', value: 'x' }] },
    { path, hidden: [onlyNew] },
  );
  const first = grow(12);
  await forms.has(...first);
  const report = await forms.reported(
    ({ matched, waiting, only_old: one, only_new: other }) =>
      matched === 50 && waiting === 0 && one.count > 0 && other.count > 0,
  );
  await sluice.kill('SIGKILL');
  sluice = await forms.run();
  const cut = await forms.turn('cutover', '--force');
  const second = grow(12);
  await forms.has(...second);
  await sluice.kill();

  const sources = (ids: readonly string[]) =>
    forms.delivered().flatMap(({ key, from }) => (ids.includes(key) ? [from] : []));
  expect(report).toMatchObject({
    only_old: { count: 1, examples: [onlyOld] },
    only_new: { count: 1, examples: [onlyNew] },
    ...{ differing: { count: 1, examples: [differs] }, fields: [{ path: 'outcome', count: 1 }] },
    brake: null,
  });
  expect(cut).toMatch(/^0 /);
  expect([repeatedIn(forms.delivered()), forms.delivered().length]).toEqual([[], 64]);
  expect(sources(first).filter((name) => name === 'next')).toHaveLength(1);
  expect(new Set(sources(second))).toEqual(new Set(['next']));
});

interface Resource {
  readonly type: string;
  readonly oldPath: string;
  readonly id: string;
  /** The paths of the first company; with the path of one entity if it is requested by its id. */
  readonly newPath: string;
  /** A field that both forms have and that a change does not touch, and how the old form calls it. */
  readonly field: string;
  /** Keys of the successor. */
  readonly keys?: object;
}

const scanned = { every: '300ms', confirm_after: '0s', settle: '0s', sweep: '1s' };

const resources: readonly Resource[] = [
  {
    ...{ type: 'tickets', oldPath: '/tickets', id: 'ticketId', field: 'requester' },
    newPath: '/api/ticketing/v1/companies/1001/tickets',
  },
  {
    ...{ type: 'hosts', oldPath: '/hosts', id: 'hostId', field: 'name', keys: { detail: null } },
    newPath: '/api/fleet/v1/companies/1001/hosts',
  },
  {
    ...{ type: 'block_list', oldPath: '/utp/block-list', id: 'entryId', field: 'category' },
    newPath: '/api/threat-protection/v1/companies/1001/block-list-entries',
  },
  {
    ...{ type: 'exclusion_list', oldPath: '/utp/exclusion-list', id: 'entryId', field: 'comment' },
    newPath: '/api/threat-protection/v1/companies/1001/exclusion-list-entries',
  },
];

testSome(2, resources)(
  '$type move from an older API',
  async ({ type, oldPath, id, newPath, field, keys }) => {
    const removals = { removals: true };
    const forms = await twoForms({
      successor: 'next',
      old: {
        entities: {
          ...{ type: 'collection', upstream: 'earlier', path: oldPath, id, pagination: page },
          ...{ ignore: ['updatedAt'], ...scanned, ...removals },
        },
      },
      new: {
        next: {
          type,
          upstream: 'services',
          ...scanned,
          ...removals,
          ...keys,
          ...succeeds('entities'),
        },
      },
      sandbox: { entities: { ticket: 8, host: 8, block_list_entry: 8, exclusion_list_entry: 8 } },
    });
    const change = (op: 'created' | 'updated' | 'deleted', entity: string) =>
      forms.sandbox.control.change(newPath, { op, id: entity });
    const known = [...forms.sandbox.ledger().collection(newPath).entities().keys()];
    const [differs = '', deleted = ''] = known;
    const [updated, later] = ['900011', '900012'];
    for (const entity of [updated, later]) {
      change('created', entity);
      // The list of hosts shows every other change.
      if (type === 'hosts') change('updated', entity);
    }
    const [both, onlyOld, onlyNew, last] = ['900001', '900002', '900003', '900004'];

    let sluice = await forms.run();
    await waitUntil(() => forms.delivered().length > 0, { what: 'the baseline' });
    await sluice.kill();
    forms.write(true);
    forms.behave(
      { path: newPath, hidden: [onlyOld], differs: [{ id: differs, field, value: 'other' }] },
      { path: `/earlier/v1${oldPath}`, hidden: [onlyNew] },
    );
    sluice = await forms.run();
    const before = forms.delivered().length;
    await forms.has(`updated ${differs}`);
    change('updated', updated);
    change('deleted', deleted);
    for (const entity of [both, onlyOld, onlyNew]) change('created', entity);
    await forms.has(`updated ${updated}`, `deleted ${deleted}`);
    await forms.has(...[both, onlyOld, onlyNew].map((entity) => `created ${entity}`));
    const report = await forms.reported(
      ({ waiting, only_old: one, only_new: other }) =>
        waiting === 0 && one.examples.includes(onlyOld) && other.examples.includes(onlyNew),
    );
    const shadow = forms.delivered().slice(before);
    await sluice.kill('SIGKILL');
    sluice = await forms.run();
    const cut = await forms.turn('cutover', '--force');
    change('created', last);
    change('updated', later);
    await forms.has(`created ${last}`, `updated ${later}`);
    await sluice.kill();

    const after = forms.delivered().slice(before);
    expect(report).toMatchObject({
      only_old: { examples: expect.arrayContaining([onlyOld]) },
      only_new: { examples: expect.arrayContaining([onlyNew]) },
      ...{ differing: { count: 1, examples: [differs] }, fields: [{ path: field, count: 1 }] },
      brake: null,
    });
    expect(cut).toMatch(/^0 /);
    expect(repeatedIn(after)).toEqual([]);
    expect(shadow.map(({ from, key }) => `${from} ${key}`).toSorted()).toEqual(
      [
        ...[
          `entities updated ${updated}`,
          `entities deleted ${deleted}`,
          `entities created ${both}`,
        ],
        ...[`entities created ${onlyOld}`, `next created ${onlyNew}`, `next updated ${differs}`],
      ].toSorted(),
    );
    expect(
      after
        .slice(shadow.length)
        .map(({ from, key }) => `${from} ${key}`)
        .toSorted(),
    ).toEqual([`next created ${last}`, `next updated ${later}`]);
  },
);
