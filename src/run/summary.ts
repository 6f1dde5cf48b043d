// The last lines of `run --once`: the number of records read, items that need attention first as in `status`, and the
// result of each sink. Pure.

import { styleText } from 'node:util';
import type { Config } from '../config/index.ts';
import type { PipelineState, Summary } from '../pipeline.ts';
import { commandOf, counted } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { attentionLines, attentionOf } from '../watch/running-status.ts';

/** The facts at the end. */
export interface After {
  readonly state: Pick<PipelineState, 'streams' | 'sinks'>;
  /** The size of the spool. */
  readonly bytes: number;
}

/** True if all records were read and every sink accepted everything; a dead letter was not accepted. */
export function isWhole({ failed, behind }: Summary, { sinks }: After['state']): boolean {
  return failed.length + behind.length === 0 && sinks.every((sink) => sink.deadLetters === 0);
}

/** The lines, for this stream. */
export function summaryLines(
  summary: Summary,
  after: After,
  {
    config,
    stream,
  }: { readonly config: Pick<Config, 'file' | 'state'>; readonly stream: NodeJS.WriteStream },
): readonly string[] {
  const { state, bytes } = after;
  const { streams, sinks } = attentionFacts(summary, state);
  const isWell = [...streams, ...sinks].every(({ error }) => error === null);
  const hasDeadLetters = sinks.some(({ dead_letters: count }) => count > 0);
  const spool = { bytes, max_bytes: config.state.maxBytes };
  const attention = attentionLines(
    attentionOf({ streams, sinks, spool }, { command: commandOf(config.file) }),
    { stream },
  );
  return [
    `${counted(summary.records, 'new record')} read from ${counted(state.streams.length, 'stream')}`,
    ...(isWell && !hasDeadLetters ? [] : attention),
    ...state.sinks.flatMap(({ name, delivered, deadLetters, suspects, setAside }) => {
      const behind = summary.behind.find(({ sink }) => sink === name);
      const text = `${name}: ${delivered} delivered, ${behind?.held ?? 0} held, ${deadLetters} dead letters`;
      if (behind === undefined && deadLetters === 0) return [text];
      const refused = deadLetters === 0 ? '' : '; refused for good and kept as dead letters';
      const cause = behind?.cause?.message ?? 'there was no time left';
      const late = behind === undefined ? '' : `; still held: ${cause}`;
      const reported = styleText('red', cleanText(`${text}${refused}${late}`, 500), { stream });
      const aside = setAside.map(({ destination, events, reason }) =>
        cleanText(`  ${events} set aside for ${destination}: ${reason}`, 500),
      );
      return [reported, ...suspectLines(suspects), ...aside];
    }),
  ];
}

const suspectsNamed = 10;

/** The events that the receiver refused while it accepted none. */
function suspectLines(suspects: After['state']['sinks'][number]['suspects']): readonly string[] {
  if (suspects === null) return [];
  const { first, events } = suspects;
  const lines = first
    .slice(0, suspectsNamed)
    .map(({ uid, stream, reason }) =>
      cleanText(`  suspect ${uid}, stream ${stream}: ${reason}`, 500),
    );
  const more = events - lines.length;
  return more > 0 ? [...lines, `  and ${counted(more, 'more suspect')}`] : lines;
}

/** At the pipeline's end: its senders are closed, so the summary has their rejected events. */
function attentionFacts({ failed, behind }: Summary, { streams, sinks }: After['state']) {
  const states = new Map(streams.map(({ name, state }) => [name, state]));
  return {
    streams: failed.map(({ stream, cause }) => ({
      name: stream,
      state: states.get(stream) ?? 'retrying',
      error: cause,
    })),
    sinks: sinks.map(({ name, deadLetters, notice, suspects }) => {
      const late = behind.find(({ sink }) => sink === name);
      const error = late?.cause ?? null;
      return {
        name,
        state: error?.code === 'sink_refused' ? 'refused' : 'retrying',
        backlog: late?.held ?? 0,
        dead_letters: deadLetters,
        error,
        notice,
        suspects,
      };
    }),
  };
}
