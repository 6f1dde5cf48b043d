// `sluice archive hold`: legal holds. A hold is an object in the archive. Setting one needs neither key nor config, and
// works while a process writes there. The writer enters the hold into the log with its next checkpoint. From then on no
// body of that time is deleted, whatever retention is set to.

import {
  checkpointPath,
  entriesOf,
  type ObjectStore,
  ProvenReader,
  readSmall,
} from '../../archive/index.ts';
import {
  type EnteredHold,
  encodeHold,
  enteredHold,
  type Hold,
  holdPath,
  isHeld,
  releaseOf,
  segmentsBefore,
} from '../../archive/operate.ts';
import { UsageError } from '../../contracts/index.ts';
import { counted, tableLines } from '../../terminal/index.ts';
import { cleanText, timeText } from '../../tools/index.ts';
import { type CommandGroup, defineCommand } from '../shared/command.ts';
import { timeTyped } from '../shared/typed.ts';
import {
  holdsAt,
  locationArgument,
  openArchive,
  readably,
  signatureOf,
  signedHead,
  signWithOption,
} from './given.ts';

const idOption = { value: 'id', about: 'name of the hold', needed: true } as const;
const entered = 'it is entered into the log with the next checkpoint';
const shownMax = 200;

const add = defineCommand({
  name: 'add',
  about: 'keep bodies despite retention until the hold is released',
  arguments: { location: locationArgument },
  options: {
    id: idOption,
    reason: { value: 'text', about: 'reason, such as the number of the case', needed: true },
    from: { value: 'time', about: 'pages read from this time on only (RFC 3339)' },
    to: { value: 'time', about: 'pages read before this time only' },
  },
  async run({ location, id, reason, from, to }, { out, env }) {
    const hold: Hold = {
      id,
      from: from === undefined ? null : timeText(timeTyped('from', from)),
      to: to === undefined ? null : timeText(timeTyped('to', to)),
      reason,
      placed_at: timeText(Date.now()),
      released_at: null,
    };
    const { store } = await openArchive(location, env);
    const set = (await holdsAt(store)).find((one) => one.id === id);
    // The same command line resumes an interrupted run.
    const isSame = set?.from === hold.from && set.to === hold.to && set.reason === reason;
    if (set !== undefined && (!isSame || set.released_at !== null)) {
      throw new UsageError(`--id: a hold ${id} was set before; another one needs another name`);
    }
    await store.create(pathOf(id), [encodeHold(hold)]);
    out(`the hold ${id} is set: ${entered}`);
    const held = await holdInBucket(store, hold, true);
    if (held > 0) out(`under a legal hold of the bucket as well: ${counted(held, 'segment')}`);
    return 0;
  },
});

const release = defineCommand({
  name: 'release',
  about: 'release a hold: retention then deletes the bodies that it kept',
  arguments: { location: locationArgument },
  options: { id: idOption, signWith: signWithOption },
  async run({ location, id, signWith }, { out, env }) {
    const { store } = await openArchive(location, env);
    const path = pathOf(id);
    const hold = (await holdsAt(store)).find((one) => one.id === id);
    const found = await readSmall(store, path);
    if (hold === undefined || found === null) throw new UsageError(`--id: there is no hold ${id}`);
    const [known] = await enteredIn(store, [hold]);
    // A request that the writer rejects never reaches the log: a wrong key, too old, or written by another account.
    const isOpen = known?.entered_at != null && known.release_entered_at === null;
    if (hold.released_at !== null && !isOpen) {
      out(`the hold ${id} was released at ${hold.released_at}`);
    } else {
      const asked = { ...hold, released_at: timeText(Date.now()) };
      const signed = await signatureOf(store, signWith, releaseOf(asked));
      const released = { ...asked, ...(signed !== undefined && { signed }) };
      if ((await store.replace(path, [encodeHold(released)], found.tag)) === null) {
        const what = 'was changed at the same moment; look at it again';
        throw new UsageError(`--id: the hold ${id} ${what}`);
      }
      out(`the hold ${id} is released: ${entered}`);
    }
    const lifted = await holdInBucket(store, { ...hold, released_at: null }, false);
    if (lifted > 0) out(`the bucket’s legal hold is lifted from ${counted(lifted, 'segment')}`);
    return 0;
  },
});

const list = defineCommand({
  name: 'list',
  about: 'list the holds',
  arguments: { location: locationArgument },
  options: { json: { about: 'as JSON' } },
  async run({ location, json }, { out, env }) {
    const { store } = await openArchive(location, env);
    const holds = await holdsAt(store);
    const entered = await enteredIn(store, holds);
    if (json) {
      out(
        JSON.stringify(
          holds.map((one, i) => ({ ...one, ...entered[i] })),
          null,
          2,
        ),
      );
    } else if (holds.length === 0) out('no hold was set');
    else {
      const titles = ['hold', 'from', 'to', 'set', 'in the log', 'released', 'reason'];
      for (const line of tableLines(
        titles,
        holds.map((one, i) => row(one, entered[i])),
      ))
        out(line);
    }
    return 0;
  },
});

/**
 * Sets or lifts the bucket's own legal hold (S3 Object Lock) on the segments of a hold. A segment that another hold
 * covers keeps its lock. Returns the number of segments changed; none if the store has no locks.
 */
async function holdInBucket(store: ObjectStore, hold: Hold, isOn: boolean): Promise<number> {
  if (!(await store.locks())) return 0;
  const reader = new ProvenReader(store, await signedHead(store));
  // A file that others changed or deleted lifts no lock of a hold that the log has in force.
  const inForce = await holdsInForce(reader);
  const others = [...(await holdsAt(store)), ...inForce].filter(({ id }) => id !== hold.id);
  let count = 0;
  for await (const segment of segmentsBefore(Number.POSITIVE_INFINITY, reader)) {
    const isKept = !isOn && others.some((one) => isHeld(one, segment));
    if (isKept || !isHeld(hold, segment)) continue;
    await store.hold(segment.object, isOn);
    count += 1;
  }
  return count;
}

/** The holds that the log has in force. Throws an ExportError if the log cannot be read. */
async function holdsInForce(
  reader: ProvenReader,
): Promise<readonly Pick<Hold, 'id' | 'from' | 'to' | 'released_at'>[]> {
  return await readably(reader.store, async () => {
    const found = new Map<string, Pick<Hold, 'id' | 'from' | 'to' | 'released_at'>>();
    for await (const { entry } of entriesOf(reader, ['hold'])) {
      if (entry.released_at !== null) found.delete(entry.id);
      else if (!found.has(entry.id)) found.set(entry.id, entry);
    }
    return [...found.values()];
  });
}

/**
 * The log's entry for each hold. Throws an ExportError if the log cannot be read. Before the first checkpoint the log
 * is empty.
 */
async function enteredIn(
  store: ObjectStore,
  holds: readonly Hold[],
): Promise<readonly EnteredHold[]> {
  const none = { entered_at: null, release_entered_at: null };
  if (holds.length === 0 || (await store.facts(checkpointPath)) === null) {
    return holds.map(() => none);
  }
  const reader = new ProvenReader(store, await signedHead(store));
  return await readably(store, async () => {
    const found: EnteredHold[] = [];
    for (const one of holds) found.push(await enteredHold(reader, one));
    return found;
  });
}

function row(
  { id, from, to, placed_at, released_at, reason }: Hold,
  { entered_at, release_entered_at }: Partial<EnteredHold> = {},
): readonly string[] {
  const released = released_at ?? '-';
  const waits = released_at !== null && release_entered_at == null;
  return [
    ...[id, from ?? '-', to ?? '-', placed_at, entered_at ?? 'not yet'],
    ...[waits ? `${released} (not in the log yet)` : released, cleanText(reason, shownMax)],
  ];
}

/** The commands below `hold`. */
export const hold: CommandGroup = {
  name: 'hold',
  about: 'set, list and release legal holds',
  commands: [add, list, release],
};

function pathOf(id: string): string {
  const path = holdPath(id);
  if (path !== null) return path;
  throw new UsageError('--id: expected letters, digits, dots, - and _, at most 64');
}
