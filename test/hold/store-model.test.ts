// The database against a list: whatever order of appends, acknowledgements, prunings and reopenings, what is held is
// what a plain list with positions would hold, and no acknowledged step is ever undone.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

type Action =
  | { readonly do: 'append'; readonly count: number }
  | { readonly do: 'acknowledge'; readonly sink: 'a' | 'b'; readonly share: number }
  | { readonly do: 'prune' }
  | { readonly do: 'fail' }
  | { readonly do: 'reopen' };

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constant('append' as const), count: fc.integer({ min: 1, max: 5 }) }),
  fc.record({
    do: fc.constant('acknowledge' as const),
    sink: fc.constantFrom('a' as const, 'b' as const),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ do: fc.constant('prune' as const) }),
  fc.record({ do: fc.constant('fail' as const) }),
  fc.record({ do: fc.constant('reopen' as const) }),
);

function open(dir: string): Store {
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  store.retainFor(['a', 'b']);
  return store;
}

test('store holds what a list would hold', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
      const dir = tempDir();
      let store = open(dir);
      const ids: string[] = [];
      const pages: { first: number; end: number }[] = [];
      const positions = { a: 0, b: 0 };
      let gone = 0;

      for (const step of actions) {
        switch (step.do) {
          case 'append': {
            const fresh = Array.from({ length: step.count }, (_, i) => String(ids.length + i));
            store.transaction(() => store.append(anAppend({ ids: fresh }), 0));
            pages.push({ first: ids.length, end: ids.length + step.count });
            ids.push(...fresh);
            break;
          }
          case 'acknowledge': {
            const position = Math.floor(step.share * ids.length);
            store.transaction(() => store.acknowledge(step.sink, { position }, 0));
            positions[step.sink] = Math.max(positions[step.sink], position);
            break;
          }
          case 'prune': {
            store.transaction(() => store.prune(1));
            const passed = Math.min(positions.a, positions.b);
            gone = Math.max(
              gone,
              ...pages.filter(({ end }) => end <= passed).map(({ end }) => end),
            );
            break;
          }
          case 'fail':
            expect(() =>
              store.transaction(() => {
                store.append(anAppend({ ids: ['never'] }), 0);
                throw new Error('cut off');
              }),
            ).toThrow();
            break;
          case 'reopen':
            store.close();
            store = open(dir);
            break;
        }
        const held = store.read(gone, 1e9);
        expect(held.map(({ first, count }) => [first, first + count])).toEqual(
          pages.filter(({ end }) => end > gone).map(({ first, end }) => [first, end]),
        );
        expect(store.gauge().end).toBe(ids.length);
        expect(store.gauge().bytes).toBe(held.reduce((sum, { body }) => sum + body.length, 0));
        expect([store.progress('a').position, store.progress('b').position]).toEqual([
          positions.a,
          positions.b,
        ]);
        expect(store.recall('audit').checkpoint).toEqual(
          ids.length === 0 ? null : { last: ids.at(-1) },
        );
      }
      store.close();
    }),
    { numRuns: 60 },
  );
});
