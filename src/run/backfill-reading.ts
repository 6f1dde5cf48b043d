// One backfill's reading: the list streams of its source, one after the other, into the spool of an open journey. The same
// whether a running process does it beside its live streams or the command alone.

import type { ExportError } from '../contracts/errors.ts';
import type { ListStream } from '../contracts/source.ts';
import { Backfill, type BackfillState } from '../fetch/backfill.ts';
import { timetable } from '../fetch/schedule.ts';
import { StreamRunner } from '../fetch/stream-runner.ts';
import { turnsOf } from '../fetch/turns.ts';
import type { PlannedSource } from '../pipeline.ts';
import { type PaceMeans, paceFor } from './backfill-pace.ts';
import { type BackfillRequest, keyOf } from './backfill-requests.ts';
import type { BootTools } from './tools.ts';

/** What it is read with. */
export interface ReadingMeans extends Omit<PaceMeans, 'clock' | 'random'> {
  readonly tools: BootTools;
}

/** A backfill being read. */
export interface BackfillReading {
  /** How far all its streams have come together. */
  readonly state: BackfillState;
  /** Reads on to the end of each. Resolves with null, or with the first thing that an operator has to mend. */
  run(signal: AbortSignal): Promise<ExportError | null>;
}

/** The source's lists; a configuration that is read whole has no past to be read. */
export function listStreams(source: PlannedSource | undefined): readonly ListStream[] {
  return (source?.streams ?? []).filter((stream) => stream.kind === 'list');
}

/** Makes ready to read what is asked for. */
export function readingOf(request: BackfillRequest, means: ReadingMeans): BackfillReading {
  const source = means.plan.sources.find(({ name }) => name === request.source);
  const parts = listStreams(source).map((stream) => partOf(stream, request, means));
  return {
    get state() {
      return together(parts.map(({ backfill }) => backfill.state));
    },
    async run(signal) {
      let first: ExportError | null = null;
      for (const { runner } of parts) {
        // One company that is denied does not keep the others from being read.
        const halted = await runner.runOnce(signal);
        first ??= halted;
      }
      return first;
    },
  };
}

function partOf(
  stream: ListStream,
  request: BackfillRequest,
  means: ReadingMeans,
): { backfill: Backfill; runner: StreamRunner } {
  const { clock, random, ...tools } = means.tools;
  const source = means.plan.sources.find(({ name }) => name === stream.source);
  const log = tools.log.with({ stream: stream.name, backfill: request.id });
  const backfill = new Backfill({
    stream,
    list: source?.list ?? { order: 'auto', lookbackMs: 0 },
    span: { fromMs: request.from, toMs: request.to },
    key: keyOf(request, stream.name),
    spool: means.spool,
    clock,
    log,
    pace: paceFor(stream, { ...means, clock, random }),
  });
  const runner = new StreamRunner({
    name: stream.name,
    source: stream.source,
    poll: (signal) => backfill.poll(signal),
    timetable: timetable({ everyMs: 0 }, clock),
    turns: turnsOf(1),
    clock,
    log,
    random,
    jitterMs: 0,
    // The live stream's note is not this one's to write.
    note: () => undefined,
  });
  return { backfill, runner };
}

function together(states: readonly BackfillState[]): BackfillState {
  const sum = (of: (state: BackfillState) => number) =>
    states.reduce((total, state) => total + of(state), 0);
  const current = states.find(({ share }) => share !== 1);
  const before = states.filter(({ share }) => share === 1).length;
  const share = current === undefined ? 1 : current.share;
  return {
    read: sum(({ read }) => read),
    held: sum(({ held }) => held),
    untimed: sum(({ untimed }) => untimed),
    reachedAt: (current ?? states.at(-1))?.reachedAt ?? null,
    share: share === null || current === undefined ? share : (before + share) / states.length,
  };
}
