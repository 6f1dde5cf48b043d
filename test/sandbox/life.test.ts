// The arithmetic of lives against the plain way: going through all steps and writing down what each
// does must come to the same entities, and each entity to the same changes.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  birthOf,
  deathOf,
  eventAt,
  existing,
  type Life,
  lifeOf,
  touchesOf,
} from '../../src/sandbox/life.ts';

const lives: fc.Arbitrary<Life> = fc
  .record({
    core: fc.nat({ max: 9 }),
    more: fc.nat({ max: 12 }),
    ages: fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 12 }), fc.nat({ max: 12 })),
  })
  .map(({ core, more, ages }) => {
    const fitting = ages.map((age) => Math.min(age, more)).toSorted((a, b) => a - b);
    const [one = 0, two = 0, three = 0] = fitting;
    return { core, start: core + more, ages: [one, two, three] };
  });

interface Entity {
  created: number | null;
  readonly updated: number[];
  deleted: number | null;
}

/** What the first steps do, one after the other; each has to find the entity as it needs it. */
function lived(life: Life, done: number): ReadonlyMap<number, Entity> {
  const all = new Map<number, Entity>();
  for (let index = 0; index < life.start; index += 1) {
    all.set(index, { created: null, updated: [], deleted: null });
  }
  for (let step = 0; step < done; step += 1) {
    const event = eventAt(life, step);
    if (event === null) continue;
    const entity = all.get(event.index);
    if (event.op === 'created') {
      expect(entity).toBeUndefined();
      all.set(event.index, { created: step, updated: [], deleted: null });
    } else {
      expect(entity).toMatchObject({ deleted: null });
      if (event.op === 'updated') entity?.updated.push(step);
      else if (entity !== undefined) entity.deleted = step;
    }
  }
  return all;
}

it('the current entities and their history are the sum of single steps', () => {
  fc.assert(
    fc.property(lives, fc.nat({ max: 200 }), (life, done) => {
      const all = lived(lifeOf(life), done);

      const left = [...all].filter(([, { deleted }]) => deleted === null).map(([index]) => index);
      expect([...existing(life, done)]).toEqual(left);
      for (const [index, { created, updated, deleted }] of all) {
        const touches = [...touchesOf(life, index, done)].filter((step) => step >= 0);
        expect(touches).toEqual(updated);
        if (created !== null) expect(birthOf(life, index)).toBe(created);
        if (deleted !== null) expect(deathOf(life, index)).toBe(deleted);
        if (deleted === null && life.start > life.core) {
          expect(deathOf(life, index)).toBeGreaterThanOrEqual(done);
        }
      }
    }),
  );
});

it('those of the start have a history: an old one has had all its changes', () => {
  const life = lifeOf({ core: 0, start: 20, ages: [0, 1, 3] });

  const changes = [0, 18, 19].map((index) => [...touchesOf(life, index, 0)].length);

  expect(changes).toEqual([3, 2, 1]);
});

it('an age beyond the end of a life is refused', () => {
  expect(() => lifeOf({ core: 5, start: 7, ages: [0, 1, 3] })).toThrow('a life of 2 cycles');
});
