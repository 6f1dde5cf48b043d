// The ends of upstreams, as status, page and attention show them. Invariant: a date alone makes nothing red; from 90
// days before, it is a notice with the next step.

import { cleanText, timeText } from '../tools/index.ts';
import { daysLeft, noticeDays, type UpstreamEnd } from '../upstream/index.ts';
import type { Matter, StoredUpstream } from './status-facts.ts';

/** The end of an upstream at a time (epoch milliseconds); `moved`: it affects no source any more. */
export function endFacts(
  name: string,
  end: UpstreamEnd,
  { now, moved }: { readonly now: number; readonly moved: boolean },
): StoredUpstream {
  const { endsMs, from, endpoint, earlier } = end;
  return {
    name,
    ends_at: timeText(endsMs),
    days_left: endsMs === null ? null : daysLeft(endsMs, now),
    ends_from: from,
    ends_endpoint: endpoint,
    moved,
    ends_earlier: earlier && { endpoint: earlier.endpoint, ends_at: timeText(earlier.endsMs) },
  };
}

/** The end as a clause: `ends on 2026-12-31, in 35 days`; null: it never ends. */
export function endText({ ends_at: at, days_left: days }: StoredUpstream): string | null {
  if (at === null || days === null) return null;
  const date = at.slice(0, 10);
  if (days < 0) return `ended on ${date}`;
  return `ends on ${date}, in ${days === 0 ? 'less than a day' : daysText(days)}`;
}

/** The origin of the date, as a clause. */
export function originText({
  name,
  ends_at: endsAt,
  ends_from: from,
  ends_endpoint: endpoint,
}: StoredUpstream): string {
  const header = { sunset: 'Sunset', deprecation: 'Deprecation' };
  switch (from) {
    case 'config':
      return `set by upstreams.${name}.ends`;
    case 'default':
      return endsAt === null
        ? 'the default for api: services, since no response names a date'
        : 'the default for api: unified, since no response names a date';
    default:
      return `named by the ${header[from]} header of ${cleanText(endpoint ?? '', pathLengthMax)}`;
  }
}

const pathLengthMax = 200;

type CommandText = (command: string, ...words: readonly string[]) => string;

/**
 * Upstreams that end within 90 days or have ended, and headers with an earlier date than the config; without upstreams
 * whose sources have all moved.
 */
export function endMatters(
  upstreams: readonly StoredUpstream[],
  command: CommandText,
): readonly Matter[] {
  const concerned = upstreams.filter(({ moved }) => !moved);
  return concerned.flatMap((one) => [...endMatter(one, command), ...earlierMatter(one)]);
}

function endMatter(one: StoredUpstream, command: CommandText): readonly Matter[] {
  const what = endText(one);
  if (what === null || (one.days_left ?? 0) >= noticeDays) return [];
  const date = `The date is ${originText(one)}.`;
  const next = `Move its sources: ${command('succession')} lists them, ${command('succession plan')} proposes successors, docs/moving.md has the steps. If the date is wrong, set upstreams.${one.name}.ends to a date or to never.`;
  return [{ mood: 'warn', who: `Upstream ${one.name}`, what, message: date, next }];
}

function earlierMatter({ name, ends_at: at, ends_earlier: earlier }: StoredUpstream): Matter[] {
  if (earlier === null) return [];
  const set = at === null ? 'never' : at.slice(0, 10);
  const endpoint = cleanText(earlier.endpoint, pathLengthMax);
  const what = `announces an earlier end than its config: ${earlier.ends_at.slice(0, 10)}`;
  const message = `A header of ${endpoint} names that date, and upstreams.${name}.ends is ${set}.`;
  const next = `Confirm the date with the vendor, then correct or remove upstreams.${name}.ends.`;
  return [{ mood: 'warn', who: `Upstream ${name}`, what, message, next }];
}

function daysText(days: number): string {
  return days === 1 ? '1 day' : `${days.toLocaleString('en')} days`;
}
