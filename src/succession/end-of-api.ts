// Failures that the end of an API explains. Invariants: a date excuses no failure; a failure after the date names the
// end and the next step, and keeps its code.

import { type ErrorCode, ExportError } from '../contracts/index.ts';
import { timeText } from '../tools/index.ts';

/** How an ended API can respond; other failures have other causes. */
const refusals: ReadonlySet<ErrorCode> = new Set([
  ...(['upstream_unreachable', 'upstream_refused', 'upstream_nonsense'] as const),
  ...(['token_refused', 'scope_lost'] as const),
]);

/** The facts on the end of a source's API. Times are epoch milliseconds. */
interface EndKnown {
  readonly source: string;
  readonly upstream: string;
  /** Null: never. */
  readonly endsMs: number | null;
  readonly now: number;
  /** Null: the source has none. */
  readonly successor: string | null;
  readonly isCutOver: boolean;
}

/** The failure with the end of its API if that explains it; else unchanged. */
export function namedByEnd(cause: ExportError, known: EndKnown): ExportError {
  const { upstream, endsMs, now } = known;
  if (endsMs === null || endsMs > now || !refusals.has(cause.code)) return cause;
  const message = `${cause.message}; the API of ${upstream} ended on ${timeText(endsMs).slice(0, 10)}`;
  const next = `${nextStep(known)} If the API has not ended, correct upstreams.${upstream}.ends: ${cause.next}`;
  return new ExportError(cause.code, message, { next, details: cause.details, cause });
}

function nextStep({ source, successor, isCutOver }: EndKnown): string {
  if (successor === null) {
    return `Move ${source} to a successor: sluice succession plan proposes one (docs/moving.md).`;
  }
  return isCutOver
    ? `Its successor ${successor} delivers, but cannot be read: repair that first.`
    : `Its successor ${successor} waits for the cutover: sluice succession cutover ${successor} --force.`;
}
