// Estimates the requests an hour for reading by parents, for `check`: with the parents that the state knows or the
// config names, else with a thousand. Lists with recent records are polled more often, and a full scan starts with one
// request for each list.

import { asksAnHour, type PlannedSource } from '../../fetch/engine.ts';
import { counted } from '../../terminal/index.ts';
import { readState } from '../../watch/index.ts';

/** Requests of one turn: the list's end, and from time to time the whole list. */
const requestsATurn = 2;
/** Used if a schedule has no interval. */
const everyMsMin = 60_000;

/** A sentence on each source that reads by parents. */
export function* parentsNotes(sources: readonly PlannedSource[], dir: string): Generator<string> {
  const state = readState(dir);
  for (const { name, streams, parents, schedule } of sources) {
    if (parents === undefined) continue;
    const { each, sweepMs } = parents;
    const held = streams.map((one) => state.streams.get(one.name)?.parents?.known ?? 0);
    const named = 'ids' in each ? each.ids.length * streams.length : 0;
    const known = Math.max(
      named,
      held.reduce((sum, one) => sum + one, 0),
    );
    const count = known === 0 ? 1_000 : known;
    const everyMs = 'everyMs' in schedule ? (schedule.minMs ?? schedule.everyMs) : everyMsMin;
    const isObject = streams.some((one) => one.kind === 'parents' && one.object !== undefined);
    const requests =
      Math.ceil(asksAnHour(count, everyMs, sweepMs)) * (isObject ? 1 : requestsATurn);
    const whose = known === 0 ? 'each 1000 parents' : counted(known, 'parent');
    yield `sources.${name}: about ${requests} requests an hour for ${whose} in rotation, and more for those of which something new comes`;
  }
}
