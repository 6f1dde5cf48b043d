// Kinds of sources in a pair beside plain lists and collections: lists per parent, objects per parent, a firewall with several
// resources, a single object, and entities that are requested by their ids. Each with a record that one side alone shows, a
// kill and a cutover.

import { expect, test } from 'vitest';
import { waitUntil } from '../support/temp.ts';
import { type PlainApi, plainApi } from './plain-api.ts';
import { type Delivered, repeatedIn, twoForms } from './two-forms.ts';

const scanned = { every: '300ms', confirm_after: '0s', settle: '0s', sweep: '1s' };
const quick = { every: '200ms', rewind_every: '1s', reconcile_every: '1s', sweep: '1s' };
const succeeds = (source: string) => ({
  succeeds: { source, overlap: '2h', patience: '2s' },
});
const tickets = '/api/ticketing/v1/companies/1001/tickets';

function named(delivered: readonly Delivered[]): readonly string[] {
  return delivered.map(({ from, key }) => `${from} ${key}`).toSorted();
}

test('timelines of tickets move from an older API', { tags: ['long'] }, async () => {
  const forms = await twoForms({
    successor: 'timeline',
    old: {
      old_tickets: {
        ...{ type: 'collection', upstream: 'earlier', path: '/tickets', id: 'ticketId' },
        ...{ pagination: { style: 'page' }, ignore: ['updatedAt'], ...scanned },
      },
      old_timeline: {
        ...{ type: 'incident_timeline', upstream: 'earlier', path: '/tickets/{parent_id}/events' },
        ...{ each: { of: 'old_tickets', id: 'ticketId' }, pagination: { style: 'page' } },
        ...{ time: ['createdAt'], ...quick },
      },
    },
    new: {
      tickets: { type: 'tickets', upstream: 'services', ...scanned, ...succeeds('old_tickets') },
      timeline: {
        ...{ type: 'ticket_events', upstream: 'services', ...quick },
        ...{ each: { of: 'tickets', id: 'ticket_id' }, ...succeeds('old_timeline') },
      },
    },
    sandbox: { entities: { ticket: 5 } },
    top: { routes: [{ from: ['old_timeline'], to: ['disk'] }] },
  });
  const ids = [...forms.sandbox.ledger().collection(tickets).entities().keys()];
  const [busy = '', onlyOld = '', onlyNew = '', later = ''] = ids;
  const eventsOf = (id: string) =>
    [...forms.sandbox.ledger().collection(tickets).timeline(id)].map((one) => Object(one).id);
  const happens = (id: string) => {
    forms.sandbox.control.change(tickets, { op: 'updated', id });
    return String(eventsOf(id).at(-1));
  };
  const before = ids.flatMap(eventsOf);
  let sluice = await forms.run();
  await forms.has(...before);
  await sluice.kill();
  forms.write(true);
  sluice = await forms.run();
  await forms.reported(({ known_before }) => known_before >= before.length);
  forms.behave(
    {
      path: `${tickets}/${onlyOld}/events`,
      hidden: [`${onlyOld}-${eventsOf(onlyOld).length + 1}`],
    },
    {
      path: `/earlier/v1/tickets/${onlyNew}/events`,
      hidden: [`${onlyNew}-${eventsOf(onlyNew).length + 1}`],
    },
  );
  const planted = [busy, onlyOld, onlyNew].map(happens);
  await forms.has(...planted);
  const report = await forms.reported(
    ({ waiting, matched, only_old: one, only_new: other }) =>
      waiting === 0 && matched > before.length && one.count === 1 && other.count === 1,
  );
  await sluice.kill('SIGKILL');
  sluice = await forms.run();
  const cut = await forms.turn('cutover', '--force');
  const last = happens(later);
  await forms.has(last);
  await sluice.kill();

  expect(report).toMatchObject({
    only_old: { count: 1, examples: [planted[1]] },
    only_new: { count: 1, examples: [planted[2]] },
    brake: null,
  });
  expect(cut).toMatch(/^0 /);
  expect(repeatedIn(forms.delivered())).toEqual([]);
  const own = forms.delivered().filter(({ key }) => [...planted, last].includes(key));
  expect(named(own)).toEqual(
    [
      ...[`old_timeline ${planted[0]}`, `old_timeline ${planted[1]}`],
      ...[`timeline ${planted[2]}`, `timeline ${last}`],
    ].toSorted(),
  );
});

const firewall = '/api/firewall/v1/companies/1';

test('a firewall moves, and its policies are not taken for its objects', async () => {
  const [old, late] = [await plainApi(), await plainApi()];
  const apis = [old, late];
  const object = (id: string, more: object = {}) => ({
    id,
    name: `net-${id}`,
    ip: '10.0.0.1',
    ...more,
  });
  const policy = (id: string) => ({ id, name: `policy-${id}` });
  const rule = (id: string, action = 'allow') => ({ id, name: `rule-${id}`, action });
  for (const { at } of apis) {
    at.set(`${firewall}/objects`, [object('1'), object('2'), object('3')]);
    at.set(`${firewall}/policies`, [policy('1'), policy('2')]);
    at.set(`${firewall}/policies/1`, { ...policy('1'), forward_rules: [rule('1'), rule('2')] });
    at.set(`${firewall}/policies/2`, { ...policy('2'), forward_rules: [rule('7')] });
  }
  const source = { type: 'firewall', ...scanned };
  const forms = await twoForms({
    successor: 'next',
    upstreams: { old: old.upstream, late: late.upstream },
    old: { walls: { ...source, upstream: 'old' } },
    new: { next: { ...source, upstream: 'late', ...succeeds('walls') } },
  });
  let sluice = await forms.run();
  await waitUntil(() => forms.delivered().length === 2, { what: 'both baselines' });
  await sluice.kill();
  forms.write(true);
  late.at.set(`${firewall}/objects`, [object('1'), object('2', { ip: '10.0.0.2' }), object('3')]);
  sluice = await forms.run();
  await forms.has('updated 2');
  const first = await forms.reported(({ matched }) => matched >= 8);
  for (const { at } of apis) {
    at.set(`${firewall}/policies/1`, {
      ...policy('1'),
      forward_rules: [rule('1', 'deny'), rule('2')],
    });
  }
  late.at.set(`${firewall}/objects`, [
    object('1'),
    object('2', { ip: '10.0.0.2' }),
    object('3'),
    object('4'),
  ]);
  // An object of the new API alone, and a policy of the old one alone with the same id.
  old.at.set(`${firewall}/policies`, [policy('1'), policy('2'), policy('4')]);
  old.at.set(`${firewall}/policies/4`, policy('4'));
  const created4 = () => forms.delivered().filter(({ key }) => key === 'created 4').length;
  await forms.has('updated 1');
  await waitUntil(() => created4() === 2, { what: 'both that have the id 4' });
  await sluice.kill('SIGKILL');
  sluice = await forms.run();
  const cut = await forms.turn('cutover', '--force');
  for (const { at } of apis) {
    at.set(`${firewall}/policies/2`, { ...policy('2'), forward_rules: [rule('7', 'deny')] });
  }
  await forms.has('updated 7');
  const last = await forms.reported(({ waiting, only_old: one }) => waiting === 0 && one.count > 0);
  await sluice.kill();

  expect(first).toMatchObject({
    ...{ matched: 8, only_old: { count: 0 }, differing: { count: 1, examples: ['2'] } },
    fields: [{ path: 'ip', count: 1 }],
  });
  expect(cut).toMatch(/^0 /);
  expect(named(forms.delivered().slice(2))).toEqual(
    [
      ...['walls updated 1', 'walls created 4'],
      ...['next updated 2', 'next created 4', 'next updated 7'],
    ].toSorted(),
  );
  expect(last).toMatchObject({
    ...{ only_old: { count: 1, examples: ['4'] }, only_new: { examples: ['2', '4'] }, brake: null },
  });
});

test('a single object moves', async () => {
  const [old, late] = [await plainApi(), await plainApi()];
  const path = '/api/fleet/v1/companies/1';
  const company = (more: object = {}) => ({
    company_id: '1',
    name: 'One',
    plan: 'premium',
    ...more,
  });
  for (const { at } of [old, late]) at.set(path, company());
  const source = { type: 'company', ...scanned };
  const forms = await twoForms({
    successor: 'next',
    upstreams: { old: old.upstream, late: late.upstream },
    old: { company: { ...source, upstream: 'old' } },
    new: { next: { ...source, upstream: 'late', ...succeeds('company') } },
  });
  let sluice = await forms.run();
  await waitUntil(() => forms.delivered().length === 1, { what: 'the baseline' });
  await sluice.kill();
  forms.write(true);
  late.at.set(path, company({ name: 'Other' }));
  sluice = await forms.run();
  await forms.has('updated 1');
  const first = await forms.report();
  await sluice.kill('SIGKILL');
  sluice = await forms.run();
  const changed = { plan: 'standard' };
  old.at.set(path, company(changed));
  late.at.set(path, company({ ...changed, name: 'Other' }));
  await waitUntil(() => forms.delivered().length === 3, { what: 'the plan' });
  const cut = await forms.turn('cutover', '--force');
  late.at.set(path, company({ ...changed, name: 'Last' }));
  await waitUntil(() => forms.delivered().length === 4, { what: 'the name' });
  await forms.reported(({ waiting }) => waiting === 0);
  await sluice.kill();

  expect(first).toMatchObject({
    ...{ matched: 1, only_old: { count: 0 }, fields: [{ path: 'name', count: 1 }] },
  });
  expect(cut).toMatch(/^0 /);
  expect(forms.delivered().map(({ from }) => from)).toEqual(['company', 'next', 'company', 'next']);
});

test('entities that are requested by their ids move', { tags: ['long'] }, async () => {
  const [old, late] = [await plainApi(), await plainApi()];
  const apis = [old, late];
  const list = '/api/fleet/v1/companies/1/hosts';
  const host = (id: string, serial: string) => {
    const shown = { host_id: id, name: `fw-${id}` };
    return { shown, whole: { ...shown, serial_number: serial } };
  };
  const set = ({ at }: PlainApi, hosts: readonly ReturnType<typeof host>[]) => {
    at.set(
      list,
      hosts.map(({ shown }) => shown),
    );
    for (const { shown, whole } of hosts) at.set(`/api/fleet/v1/hosts/${shown.host_id}`, whole);
  };
  for (const api of apis) set(api, [host('1', 'a'), host('2', 'b'), host('3', 'c')]);
  const source = { type: 'hosts', ...scanned, baseline: 'summary' };
  const forms = await twoForms({
    successor: 'next',
    upstreams: { old: old.upstream, late: late.upstream },
    old: { hosts: { ...source, upstream: 'old' } },
    new: { next: { ...source, upstream: 'late', ...succeeds('hosts') } },
  });
  let sluice = await forms.run();
  await waitUntil(() => forms.delivered().length === 1, { what: 'the baseline' });
  await sluice.kill();
  forms.write(true);
  set(late, [host('1', 'a'), host('2', 'other'), host('3', 'c')]);
  sluice = await forms.run();
  await forms.has('updated 2');
  const first = await forms.report();
  set(old, [host('1', 'A'), host('2', 'b'), host('3', 'c')]);
  set(late, [host('1', 'A'), host('2', 'other'), host('3', 'c'), host('4', 'd')]);
  await forms.has('updated 1', 'created 4');
  await sluice.kill('SIGKILL');
  sluice = await forms.run();
  const cut = await forms.turn('cutover', '--force');
  set(old, [host('1', 'A'), host('2', 'b'), host('3', 'C')]);
  set(late, [host('1', 'A'), host('2', 'other'), host('3', 'C'), host('4', 'd')]);
  await forms.has('updated 3');
  await forms.reported(({ waiting }) => waiting === 0);
  await sluice.kill();

  expect(first).toMatchObject({
    ...{ matched: 3, only_old: { count: 0 }, fields: [{ path: 'serial_number', count: 1 }] },
  });
  expect(cut).toMatch(/^0 /);
  expect(named(forms.delivered().slice(1))).toEqual(
    ['hosts updated 1', 'next updated 2', 'next created 4', 'next updated 3'].toSorted(),
  );
});

test('objects per parent move', { tags: ['long'] }, async () => {
  const [old, late] = [await plainApi(), await plainApi()];
  const ids = ['1', '2', '3', '4', '5'];
  const path = (id: string) => `/api/self-service/v1/companies/1/changes/${id}/output`;
  const set = ({ at }: PlainApi, id: string, status: string) => at.set(path(id), { status });
  for (const api of [old, late]) for (const id of ids.slice(0, 4)) set(api, id, 'RUNNING');
  const source = { type: 'changes', each: { ids }, ...quick };
  const forms = await twoForms({
    successor: 'next',
    upstreams: { old: old.upstream, late: late.upstream },
    old: { changes: { ...source, upstream: 'old' } },
    new: { next: { ...source, upstream: 'late', ...succeeds('changes') } },
  });
  const shown = (from: number) =>
    forms
      .delivered()
      .slice(from)
      .map(({ from: name, event }) => `${name} ${Object(event.entity).uid} ${event.activity_name}`)
      .toSorted();
  let sluice = await forms.run();
  await waitUntil(() => forms.delivered().length === 4, { what: 'the changes' });
  await sluice.kill();
  forms.write(true);
  sluice = await forms.run();
  await forms.reported(({ known_before: known, matched }) => known + matched >= 4);
  // Both show the end of 1; the end of 2 is in the old API alone, 5 in the new one alone.
  set(old, '1', 'COMPLETED');
  set(late, '1', 'COMPLETED');
  set(old, '2', 'FAILED');
  set(late, '5', 'COMPLETED');
  await waitUntil(() => forms.delivered().length >= 7, { what: () => `ends: ${shown(4)}` });
  await sluice.kill('SIGKILL');
  sluice = await forms.run();
  const cut = await forms.turn('cutover', '--force');
  set(old, '3', 'COMPLETED');
  set(late, '3', 'COMPLETED');
  await waitUntil(() => forms.delivered().length >= 8, { what: () => `ends: ${shown(4)}` });
  await forms.reported(({ waiting }) => waiting === 0);
  await sluice.kill();

  expect(cut).toMatch(/^0 /);
  expect(shown(4)).toEqual(
    [
      ...['changes 1 COMPLETED', 'changes 2 FAILED', 'next 5 COMPLETED', 'next 3 COMPLETED'],
    ].toSorted(),
  );
});
