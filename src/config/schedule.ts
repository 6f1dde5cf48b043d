// The schedule of a source: `every`, or `schedule` with `timezone`. Both together contradict each other, and an invalid
// cron expression or zone would otherwise fail only at its first time, so everything is checked here.

import { isTimeZone } from '../contracts/config.ts';
import type { Schedule } from '../contracts/index.ts';
import { cronFault, nearest, parseCron } from '../tools/index.ts';
import { shown, withoutReferences } from './block.ts';
import type { Flaws } from './flaws.ts';
import type { NamedBlock } from './section.ts';
import { everyMsDefault } from './shape.ts';

/** The parsed keys. */
export interface ScheduleKeys {
  readonly every?: number | { readonly min: number; readonly max: number } | undefined;
  readonly schedule?: string | undefined;
  readonly timezone?: string | undefined;
}

/** The schedule of a source; null: the flaws give the reason. */
export function readSchedule(
  { every, schedule, timezone }: ScheduleKeys,
  { written, path }: NamedBlock<null>,
  flaws: Flaws,
): Schedule | null {
  const before = flaws.count;
  const report = (key: keyof ScheduleKeys, message: string, atKey = false) => {
    const at = written.children?.get(key);
    const said = at === undefined ? message : withoutReferences(message, at);
    flaws.add((atKey ? at?.keyAt : at?.at) ?? written.at, [...path, key], said);
  };
  if (schedule !== undefined && every !== undefined) {
    report('schedule', 'every is set as well; a source has one of the two', true);
  }
  if (schedule !== undefined) {
    const fault = cronFault(schedule);
    if (fault !== null) {
      report('schedule', `this is no cron expression: ${fault}`);
    } else if (parseCron(schedule, 'UTC').next(0) === null) {
      report('schedule', 'no date matches this cron expression; check day and month');
    }
  }
  if (timezone !== undefined && schedule === undefined) {
    report('timezone', 'it belongs to schedule, and there is none; leave it out', true);
  } else if (timezone !== undefined && !isTimeZone(timezone)) {
    const zone = written.children?.get('timezone');
    const near = zone?.template === null ? nearestZone(timezone) : null;
    const hint = near === null ? '' : `; did you mean ${near}?`;
    report('timezone', `unknown time zone ${zone === undefined ? '' : shown(zone)}${hint}`);
  }
  if (typeof every === 'object' && every.min > every.max) {
    const written = `min is ${every.min / 1_000} s and max is ${every.max / 1_000} s`;
    report('every', `${written}; min must not be longer than max`);
  }
  if (flaws.count > before) return null;
  const isKnown = (key: keyof ScheduleKeys) => written.children?.get(key)?.unset == null;
  if (schedule === undefined || !isKnown('schedule')) {
    if (typeof every !== 'object') return { everyMs: every ?? everyMsDefault };
    const { min: minMs, max: everyMs } = every;
    return { everyMs, ...(minMs < everyMs && { minMs }) };
  }
  return { cron: schedule, timezone: isKnown('timezone') ? timezone : undefined };
}

function nearestZone(name: string): string | null {
  return nearest(name, Intl.supportedValuesOf('timeZone'));
}
