// What is done when upstream refuses the cursor that a stream resumes at. A refusal can be a slip, the endpoint can be at fault,
// or the cursor is dead: the three are told apart before anything is changed. A dead cursor costs a walk through the
// whole list, repeats left out, and is told to the sinks as `source.checkpoint_reset`; where the list no longer
// reaches back to what was read, also as `source.gap_suspected`.

import { ExportError } from '../contracts/errors.ts';
import type { Place } from '../contracts/source.ts';
import type { ListReader, Taken } from './list-reader.ts';
import { NoPage } from './outcome.ts';
import type { Finding } from './own-pages.ts';
import { timeSpan } from './record-time.ts';

/** How to recover. */
export interface Recovery {
  readonly first: Place;
  readonly onCursorInvalid: 'rewalk' | 'halt' | 'from_now';
  readonly signal: AbortSignal;
}

/**
 * Finds out what a refusal means. Null: it was a slip, the next poll goes on as before. Else the list has to be walked
 * anew, and the findings are to be committed with that. Throws NoPage when the endpoint is at fault or the config says halt.
 */
export async function recover(
  reader: ListReader,
  refusal: NoPage,
  { first, onCursorInvalid, signal }: Recovery,
): Promise<{ findings: readonly Finding[] } | null> {
  const { stream, log, clock } = reader.means;
  if (!isIgnored(refusal)) {
    if (await answers(reader, reader.checkpoint.resume ?? first, signal)) return null;
    await reader.fetch(first, signal);
  }
  log.warn('upstream no longer takes the cursor', { stream: stream.name, error: refusal.message });
  if (onCursorInvalid === 'halt') throw refusal;
  const findings = [resetFinding(reader, refusal)];
  if (onCursorInvalid === 'from_now') await reader.commit(null, { since: clock.now() });
  return { findings };
}

async function answers(reader: ListReader, place: Place, signal: AbortSignal): Promise<boolean> {
  try {
    await reader.fetch(place, signal);
    return true;
  } catch (error) {
    if (error instanceof NoPage && error.fetched.outcome === 'refused') return false;
    throw error;
  }
}

function resetFinding(reader: ListReader, refusal: NoPage): Finding {
  return {
    condition: 'source.checkpoint_reset',
    message: `upstream no longer takes the cursor of ${reader.means.stream.name}; its list is read again from the beginning, repeats left out`,
    details: { reason: refusal.fetched.cause.message },
  };
}

/** A cursor that was answered with the list's first page: taken, and not heeded. */
export function ignoredCursor(stream: string): NoPage {
  const cause = new ExportError(
    'cursor_refused',
    `reading ${stream}: upstream answers the cursor with the first page of the list`,
    { next: 'The list is read again from its beginning by itself, repeats left out.' },
  );
  return new NoPage({ outcome: 'refused', about: 'cursor', status: 200, cause });
}

function isIgnored({ fetched }: NoPage): boolean {
  return fetched.outcome === 'refused' && fetched.status === 200;
}

/** What a walk through a whole list has seen, to tell whether it reaches back to what was read before. */
export class Reach {
  #known = false;
  #earliest: number | null = null;

  /** Notes a page of the walk. */
  add({ page, judged }: Taken, time: readonly string[]): void {
    this.#known ||= judged.fresh.length < page.records.length;
    const earliest = timeSpan(page.records, time)?.earliest ?? null;
    if (earliest !== null) this.#earliest = Math.min(this.#earliest ?? earliest, earliest);
  }

  /** Nothing of what was read before is there any more: records between may be gone too. */
  gap(stream: string, watermark: number | null): readonly Finding[] {
    if (this.#known || watermark === null || this.#earliest === null) return [];
    if (this.#earliest <= watermark) return [];
    return [
      {
        condition: 'source.gap_suspected',
        message: `the oldest record that ${stream} still has is newer than the latest one read; records between may be lost upstream`,
        details: {
          from: new Date(watermark).toISOString(),
          to: new Date(this.#earliest).toISOString(),
        },
      },
    ];
  }
}
