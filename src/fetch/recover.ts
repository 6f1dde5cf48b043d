// What is done when upstream refuses the cursor that a stream resumes at. A refusal can be a slip, the endpoint can be at fault,
// or the cursor is dead: the three are told apart before anything is changed. A dead cursor costs a walk through the
// whole list, repeats left out, and is told to the sinks as `source.checkpoint_reset`; where the list no longer
// reaches back to what was read, also as `source.gap_suspected`.

import type { Page, Place } from '../contracts/source.ts';
import type { ListReader } from './list-reader.ts';
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
  if (await answers(reader, reader.checkpoint.resume ?? first, signal)) return null;
  const firstPage = await reader.fetch(first, signal);
  log.warn('upstream no longer takes the cursor', { stream: stream.name, error: refusal.message });
  if (onCursorInvalid === 'halt') throw refusal;
  const findings = resetFindings(reader, refusal, firstPage);
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

function resetFindings(reader: ListReader, refusal: NoPage, first: Page): readonly Finding[] {
  const { time, name } = reader.means.stream;
  const { watermark } = reader.checkpoint;
  const reset: Finding = {
    condition: 'source.checkpoint_reset',
    message: `upstream no longer takes the cursor of ${name}; its list is read again from the beginning, repeats left out`,
    details: { reason: refusal.fetched.cause.message },
  };
  const span = timeSpan(first.records, time);
  if (span === null || watermark === null || span.earliest <= watermark) return [reset];
  return [
    reset,
    {
      condition: 'source.gap_suspected',
      message: `the oldest record that ${name} still has is newer than the latest one read; records between may be lost upstream`,
      details: {
        from: new Date(watermark).toISOString(),
        to: new Date(span.earliest).toISOString(),
      },
    },
  ];
}
