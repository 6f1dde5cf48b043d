// `sluice archive hold`: legal holds. A hold is set by an object in the archive, with neither key nor
// config, also while a process writes there: that one enters it into the log with its next
// checkpoint, and from then on no body in its time goes, whatever retention says.

import { encodeHold, type Hold, holdPath } from '../../archive/holds.ts';
import { UsageError } from '../../contracts/errors.ts';
import { openStore } from '../../objects/open.ts';
import { tableLines } from '../../terminal/table.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { timeText } from '../../tools/time-text.ts';
import { type CommandGroup, defineCommand } from '../shared/command.ts';
import { timeTyped } from '../shared/typed.ts';
import { holdsAt, locationArgument } from './given.ts';

const idOption = { value: 'id', about: 'what the hold is called', needed: true } as const;
const entered = 'it is entered into the log with the next checkpoint';
const shownMax = 200;

const add = defineCommand({
  name: 'add',
  about: 'keep bodies whatever retention says, until the hold is released',
  arguments: { location: locationArgument },
  options: {
    id: idOption,
    reason: { value: 'text', about: 'why, such as the case’s number', needed: true },
    from: { value: 'time', about: 'pages read from this time on only (RFC 3339)' },
    to: { value: 'time', about: 'pages read before this time only' },
  },
  async run({ location, id, reason, from, to }, { out }) {
    const hold: Hold = {
      id,
      from: from === undefined ? null : timeText(timeTyped('from', from)),
      to: to === undefined ? null : timeText(timeTyped('to', to)),
      reason,
      placed_at: timeText(Date.now()),
      released_at: null,
    };
    const store = await openStore(location);
    if ((await store.create(pathOf(id), [encodeHold(hold)])) === 'exists') {
      throw new UsageError(`--id: a hold ${id} was set before; another one needs another name`);
    }
    out(`the hold ${id} is set: ${entered}`);
    return 0;
  },
});

const release = defineCommand({
  name: 'release',
  about: 'release a hold: what it kept goes when retention says so',
  arguments: { location: locationArgument },
  options: { id: idOption },
  async run({ location, id }, { out }) {
    const store = await openStore(location);
    const path = pathOf(id);
    const hold = (await holdsAt(store)).find((one) => one.id === id);
    const found = await store.read(path);
    if (hold === undefined || found === null) throw new UsageError(`--id: there is no hold ${id}`);
    if (hold.released_at !== null) {
      out(`the hold ${id} was released at ${hold.released_at}`);
      return 0;
    }
    const released = { ...hold, released_at: timeText(Date.now()) };
    if ((await store.replace(path, [encodeHold(released)], found.tag)) === null) {
      throw new UsageError(`--id: the hold ${id} was changed at the same moment; look at it again`);
    }
    out(`the hold ${id} is released: ${entered}`);
    return 0;
  },
});

const list = defineCommand({
  name: 'list',
  about: 'list the holds that were set',
  arguments: { location: locationArgument },
  options: { json: { about: 'as JSON' } },
  async run({ location, json }, { out }) {
    const store = await openStore(location);
    const holds = await holdsAt(store);
    if (json) out(JSON.stringify(holds, null, 2));
    else if (holds.length === 0) out('no hold was set');
    else
      for (const line of tableLines(
        ['hold', 'from', 'to', 'set', 'released', 'reason'],
        holds.map(row),
      ))
        out(line);
    return 0;
  },
});

function row({ id, from, to, placed_at, released_at, reason }: Hold): readonly string[] {
  return [id, from ?? '-', to ?? '-', placed_at, released_at ?? '-', cleanText(reason, shownMax)];
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
