// The progress of a backfill: on a terminal a bar that is redrawn in place, with rate and time left; else a log line
// each minute. Both show the same facts, and only known ones.

import type { Log } from '../../contracts/index.ts';
import type { BackfillProgress } from '../../hold/open.ts';
import { cleanText, spanText } from '../../tools/index.ts';
import { LinesLog, passOn } from '../../watch/log.ts';

/** The span for rates, long enough for a stable value and short enough to be current. */
const windowMs = 30_000;
/** A shorter span gives no useful rate. */
const spanMsMin = 1_000;
const lineEveryMs = 60_000;
const barWidth = 24;
/** ECMA-48: to the line's start, and nothing on it. */
const eraseLine = '\r\u001b[K';

/** Shows progress as it comes. */
export interface Meter {
  show(progress: BackfillProgress): void;
  /** Removes the bar to make space for a line; the next progress draws it again. */
  clear(): void;
}

/** A meter for this stderr. */
export function meterFor(
  stderr: { readonly isTTY?: boolean; write(text: string): unknown },
  { log, name, now }: { readonly log: Log; readonly name: string; readonly now: () => number },
): Meter {
  const speed = speedOf();
  if (stderr.isTTY !== true) {
    let reportedAt = Number.NEGATIVE_INFINITY;
    return {
      show(progress) {
        const rates = speed(progress, now());
        if (now() - reportedAt < lineEveryMs) return;
        reportedAt = now();
        log.info('backfill_progress', 'backfilling', { ...lineFields(progress, rates) });
      },
      clear: () => undefined,
    };
  }
  return {
    show(progress) {
      stderr.write(`${eraseLine}${barText(name, progress, speed(progress, now()))}`);
    },
    clear: () => void stderr.write(eraseLine),
  };
}

/** The same log; the bar makes way for each line. */
export function besideMeter(log: Log, clear: () => void): Log {
  return new LinesLog((head, fields) => {
    clear();
    passOn(log, head, fields());
  });
}

/** Null while unknown. */
interface Rates {
  readonly perS: number | null;
  readonly leftMs: number | null;
}

/** Computes rates from successive progress reports. */
function speedOf(): (progress: BackfillProgress, now: number) => Rates {
  const seen: { at: number; read: number; share: number | null }[] = [];
  return ({ read, share }, now) => {
    seen.push({ at: now, read, share });
    while (seen.length > 2 && now - (seen[0]?.at ?? now) > windowMs) seen.shift();
    const first = seen[0];
    const ms = now - (first?.at ?? now);
    if (first === undefined || ms < spanMsMin) return { perS: null, leftMs: null };
    const gained = share === null || first.share === null ? 0 : share - first.share;
    return {
      perS: Math.max(0, ((read - first.read) * 1_000) / ms),
      leftMs: gained > 0 && share !== null ? ((1 - share) / gained) * ms : null,
    };
  };
}

/** `audit [######------] 50%  1200 read, 300 held, 20 to deliver  350/s  1m 20s left`. */
function barText(name: string, progress: BackfillProgress, { perS, leftMs }: Rates): string {
  const { share, read, held, behind, state, slowest } = progress;
  const to = slowest === undefined ? '' : ` to ${cleanText(slowest.sink, 80)}`;
  const fails = slowest?.error ? [`which fails: ${cleanText(slowest.error, 200)}`] : [];
  const full = Math.round((share ?? 0) * barWidth);
  const bar = `[${'#'.repeat(full)}${'-'.repeat(barWidth - full)}]`;
  return [
    `${name} ${bar} ${share === null ? '?' : Math.floor(share * 100)}%`,
    `${read} read, ${held} held, ${behind} to deliver${to}`,
    ...fails,
    ...(state === 'reading' ? [] : [state]),
    ...(state !== 'reading' || perS === null ? [] : [`${Math.round(perS)}/s`]),
    ...(state !== 'reading' || leftMs === null ? [] : [`${spanText(leftMs)} left`]),
  ].join('  ');
}

function lineFields(
  { state, read, held, untimed, behind, slowest, share, reachedAt }: BackfillProgress,
  { perS, leftMs }: Rates,
) {
  return {
    state,
    read,
    held,
    untimed,
    to_deliver: behind,
    ...(slowest === undefined ? {} : { sink: slowest.sink }),
    ...(slowest?.error ? { error: slowest.error } : {}),
    ...(reachedAt === null ? {} : { reached: new Date(reachedAt).toISOString() }),
    ...(share === null ? {} : { percent: Math.floor(share * 100) }),
    ...(perS === null ? {} : { records_per_s: Math.round(perS) }),
    ...(leftMs === null ? {} : { left: spanText(leftMs) }),
  };
}
