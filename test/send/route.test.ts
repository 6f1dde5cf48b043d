// Routes: what passes, what is taken out, and that a filter which fails lets its event pass.

import { expect, test } from 'vitest';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { Route } from '../../src/contracts/index.ts';
import { type FilterFailure, selectionFor } from '../../src/send/route.ts';
import { anEvent } from '../support/an-event.ts';

const way = { source: 'audit', sink: 'siem' };
const route = (more: Partial<Route> = {}): Route => ({ from: ['audit'], to: ['siem'], ...more });
const count = () => undefined;

test('selectionFor gives everything where there are no routes, and nothing where none leads there', () => {
  const event = anEvent();

  const everything = selectionFor([], way, count);
  const nothing = selectionFor([route({ to: ['lake'] })], way, count);

  expect(everything?.select(event)).toBe(event);
  expect(nothing).toBeNull();
});

test('selectionFor selects by its expression', () => {
  const selection = selectionFor(
    [route({ where: 'event.severity_id >= 3 && event.metadata.uid != ""' })],
    way,
    count,
  );

  const passes = [1, 3, 5].map(
    (severity_id) => selection?.select(anEvent({ ocsf: { severity_id } })) !== null,
  );

  expect(passes).toEqual([false, true, true]);
});

test('selectionFor lets an event pass on which the expression fails, and counts it', () => {
  const failures: FilterFailure[] = [];
  const where = 'event.nowhere.name == "x"';
  const routes = [route({ from: ['web'] }), route({ where })];
  const selection = selectionFor(routes, way, (failure) => failures.push(failure));

  const selected = selection?.select(anEvent());

  expect(selected).not.toBeNull();
  expect(failures).toEqual([{ route: 1, source: 'audit', where, why: 'No such key: nowhere' }]);
});

test('selectionFor takes redacted fields out of a copy, in arrays too', () => {
  const ocsf = {
    actor: { user: { name: 'eve', email_addr: 'eve@example.com' } },
    resources: [{ uid: 'r1', name: 'secret' }, { uid: 'r2' }],
  } as Partial<OcsfEvent>;
  const event = anEvent({ ocsf });
  const selection = selectionFor(
    [route({ redact: ['actor.user.email_addr', 'resources.name', 'not.there'] })],
    way,
    count,
  );

  const selected = selection?.select(event);

  expect(selected?.ocsf.actor).toEqual({ user: { name: 'eve' } });
  expect(selected?.ocsf.resources).toEqual([{ uid: 'r1' }, { uid: 'r2' }]);
  expect(event.ocsf.actor?.user?.email_addr).toBe('eve@example.com');
});
