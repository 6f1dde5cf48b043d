// When the entities of a collection come, change and go, as arithmetic: nothing is held, and any
// moment of any entity can be asked for again. Time is counted in steps, six to a round. A round
// creates one entity, changes three that were created some rounds ago, changes one of the core, and
// deletes the oldest that is not of the core. So an entity has a life: it comes, changes at set
// ages (a ticket is answered, then closed), and goes. Entities that stood at the start have lived
// before step 0: their steps are negative.

/** How a collection lives. `ages` are the rounds after which an entity changes, ascending. */
export interface Life {
  /** The first so many entities are never deleted and change in turn. */
  readonly core: number;
  /** How many stand at the start, the core included; as many as the core: none comes or goes. */
  readonly start: number;
  readonly ages: readonly [number, number, number];
}

/** What a step does. `index` counts entities in the order of their creation. */
export interface LifeEvent {
  readonly op: 'created' | 'updated' | 'deleted';
  readonly index: number;
}

const ROUND = 6;
const CORE_SLOT = 4;
const DELETE_SLOT = 5;

/** A life whose ages fit: an entity must not change after it is gone. */
export function lifeOf(life: Life): Life {
  const { core, start, ages } = life;
  if (start > core && Math.max(...ages) > start - core) {
    throw new RangeError(`a life of ${start - core} rounds has no age ${Math.max(...ages)}`);
  }
  return life;
}

/** What a step does, or null where it does nothing. */
export function eventAt({ core, start, ages }: Life, step: number): LifeEvent | null {
  const [round, slot] = [Math.floor(step / ROUND), ((step % ROUND) + ROUND) % ROUND];
  if (slot === CORE_SLOT) return core === 0 ? null : { op: 'updated', index: round % core };
  if (start === core) return null;
  if (slot === 0) return { op: 'created', index: start + round };
  if (slot === DELETE_SLOT) return { op: 'deleted', index: core + round };
  return { op: 'updated', index: start + round - (ages[slot - 1] ?? 0) };
}

/** The entities that stand after `done` steps, oldest first. */
export function* existing({ core, start }: Life, done: number): Generator<number> {
  const fixed = start === core;
  const [gone, end] = fixed ? [0, start] : [deletedIn(done), start + createdIn(done)];
  for (let index = 0; index < core; index += 1) yield index;
  for (let index = core + gone; index < end; index += 1) yield index;
}

/** The step in which an entity was created; negative for those of the start. */
export function birthOf({ start }: Life, index: number): number {
  return (index - start) * ROUND;
}

/** The step in which an entity is deleted; never for the core. */
export function deathOf({ core }: Life, index: number): number {
  return index < core ? Number.POSITIVE_INFINITY : (index - core) * ROUND + DELETE_SLOT;
}

/** The first `done` steps' changes of an entity, its creation excepted, oldest first. */
export function* touchesOf(life: Life, index: number, done: number): Generator<number> {
  const { core, start, ages } = life;
  if (index < core) {
    for (let step = index * ROUND + CORE_SLOT; step < done; step += core * ROUND) yield step;
    return;
  }
  for (const [at, age] of ages.entries()) {
    const step = (index - start + age) * ROUND + at + 1;
    if (step < done) yield step;
  }
}

function createdIn(done: number): number {
  return Math.ceil(done / ROUND);
}

function deletedIn(done: number): number {
  return Math.floor(done / ROUND);
}
