// When the entities of a collection are created, changed and deleted, as arithmetic: nothing is stored, and any state
// of any entity can be recomputed. Time is counted in steps, six per cycle. A cycle creates one entity, changes three
// that were created some cycles ago, changes one of the core, and deletes the oldest outside the core. So an entity is
// created, changes at set ages (a ticket is answered, then closed), and is deleted. Entities that exist at the start
// have negative steps.

/** The life of a collection. `ages` are the cycles after which an entity changes, ascending. */
export interface Life {
  /** The first entities, this many, are never deleted and change in turn. */
  readonly core: number;
  /** Number of entities at the start, including the core; if equal to the core, none is created or deleted. */
  readonly start: number;
  readonly ages: readonly [number, number, number];
}

/** The change of a step. `index` counts entities in the order of their creation. */
export interface LifeEvent {
  readonly op: 'created' | 'updated' | 'deleted';
  readonly index: number;
}

const CYCLE = 6;
const CORE_SLOT = 4;
const DELETE_SLOT = 5;

/** Checks the ages: an entity must not change after its deletion. */
export function lifeOf(life: Life): Life {
  const { core, start, ages } = life;
  if (start > core && Math.max(...ages) > start - core) {
    throw new RangeError(`a life of ${start - core} cycles has no age ${Math.max(...ages)}`);
  }
  return life;
}

/** The change of a step; null: none. */
export function eventAt({ core, start, ages }: Life, step: number): LifeEvent | null {
  const [cycle, slot] = [Math.floor(step / CYCLE), ((step % CYCLE) + CYCLE) % CYCLE];
  if (slot === CORE_SLOT) return core === 0 ? null : { op: 'updated', index: cycle % core };
  if (start === core) return null;
  if (slot === 0) return { op: 'created', index: start + cycle };
  if (slot === DELETE_SLOT) return { op: 'deleted', index: core + cycle };
  return { op: 'updated', index: start + cycle - (ages[slot - 1] ?? 0) };
}

/** The entities that exist after `done` steps, oldest first. */
export function* existing({ core, start }: Life, done: number): Generator<number> {
  const fixed = start === core;
  const [gone, end] = fixed ? [0, start] : [deletedIn(done), start + createdIn(done)];
  for (let index = 0; index < core; index += 1) yield index;
  for (let index = core + gone; index < end; index += 1) yield index;
}

/** The step of an entity's creation; negative for those of the start. */
export function birthOf({ start }: Life, index: number): number {
  return (index - start) * CYCLE;
}

/** The step of an entity's deletion; infinite for the core. */
export function deathOf({ core }: Life, index: number): number {
  return index < core ? Number.POSITIVE_INFINITY : (index - core) * CYCLE + DELETE_SLOT;
}

/** The changes of an entity in the first `done` steps, without its creation, oldest first. */
export function* touchesOf(life: Life, index: number, done: number): Generator<number> {
  const { core, start, ages } = life;
  if (index < core) {
    for (let step = index * CYCLE + CORE_SLOT; step < done; step += core * CYCLE) yield step;
    return;
  }
  for (const [at, age] of ages.entries()) {
    const step = (index - start + age) * CYCLE + at + 1;
    if (step < done) yield step;
  }
}

function createdIn(done: number): number {
  return Math.ceil(done / CYCLE);
}

function deletedIn(done: number): number {
  return Math.floor(done / CYCLE);
}
