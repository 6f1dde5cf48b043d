// The first log lines of a run: where each stream resumes and how many events are stored for each sink, so that an
// operator sees whether a restart resumed correctly. Cursors are never shown.

import { backlog, type ErrorDetails, type EventAt } from '../contracts/index.ts';
import type { Plan } from '../pipeline.ts';
import { startText, timeText } from '../tools/index.ts';
import type { State } from '../watch/index.ts';

/** One line to log at info. */
export interface ResumeLine {
  readonly event: EventAt<'info'>;
  readonly text: string;
  readonly fields: ErrorDetails;
}

/** With more streams than this, one line for each source is enough. */
const streamLinesMax = 50;

/** The lines for this plan on this state, streams first. */
export function resumeLines(plan: Plan, before: State): readonly ResumeLine[] {
  const streams = plan.sources.reduce((sum, source) => sum + source.streams.length, 0);
  const perStream = streams <= streamLinesMax;
  return [
    ...plan.sources.flatMap((source) =>
      perStream
        ? source.streams.map((stream) => streamLine(source, stream.name, before))
        : [sourceLine(source, before)],
    ),
    ...plan.sinks.map((sink) => {
      const known = before.sinks.get(sink.name);
      const fields = {
        sink: sink.name,
        position: known?.position ?? 0,
        held: backlog(before.spool, known?.position ?? 0),
      };
      return { event: 'sink_resumed' as const, text: 'the sink resumes from its position', fields };
    }),
  ];
}

function streamLine({ list }: Plan['sources'][number], stream: string, before: State): ResumeLine {
  const checkpoint = before.streams.get(stream)?.checkpoint ?? null;
  if (checkpoint === null) {
    const start = list?.start;
    const isTime = typeof start === 'number';
    return {
      event: 'stream_started',
      text: isTime ? 'the stream starts at a time' : `the stream starts ${startText(start)}`,
      fields: { stream, ...(isTime && { start: timeText(start) }) },
    };
  }
  const at = timeText(checkpoint.savedAt);
  return {
    event: 'stream_resumed',
    text: 'the stream resumes after its checkpoint',
    fields: { stream, ...(checkpoint.order === null ? {} : { order: checkpoint.order }), at },
  };
}

function sourceLine(source: Plan['sources'][number], before: State): ResumeLine {
  const resumed = source.streams.filter(({ name }) => before.streams.get(name)?.checkpoint);
  return {
    event: 'source_resumed',
    text: 'the source’s streams resume after their checkpoints, or start',
    fields: {
      source: source.name,
      resume: resumed.length,
      start: source.streams.length - resumed.length,
    },
  };
}
