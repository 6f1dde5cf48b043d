// `sluice preview`: shows how a record is processed, without a run: the normalised event, and for each sink whether the
// event goes there and its exact bytes. It opens, requests and stores nothing, and needs no secrets. Frames,
// compression and a protocol's envelope around an event are not shown.

import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { loadConfig, whyUnreadable } from '../config/index.ts';
import { asExportError, type Stream, UsageError } from '../contracts/index.ts';
import { openTools, type Plan, planFrom, planToLook, type WholePlan } from '../run/index.ts';
import { factLines, painted, visibleBytes, visibleJsonLines } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';
import { liveRecord } from './shared/ask-upstream.ts';
import { afterCheck } from './shared/check-answers.ts';
import {
  type CommandDeps,
  configOption,
  defineCommand,
  type ExitCode,
  failureText,
} from './shared/command.ts';
import { readConfigToLook } from './shared/looking.ts';
import { maskedForAll, rehearse, type SinkRehearsal } from './shared/rehearse.ts';
import { refuseUnknown } from './shared/typed.ts';

/** Shows how the record in a file is processed; `-`: the record on standard input. */
export const preview = defineCommand({
  name: 'preview',
  about: 'show how a record is processed: its event, its routes, and the output for each sink',
  arguments: {
    file: {
      value: 'record.json',
      about: 'a file with one record as upstream sends it; - for standard input',
      optional: true,
    },
  },
  options: {
    config: configOption,
    source: { value: 'name', about: 'source of the record (required if there is more than one)' },
    sink: { value: 'name', about: 'only the output for this sink' },
    live: { value: 'source', about: 'instead of a file: request one record of this source' },
  },
  more: `Nothing is sent to a sink, and no state is changed. With --live one record is requested from upstream, with the
credential of the config, as \`check --connect\` does. Values that a route masks are masked.
Exit code: 0 shown, or upstream has no record; 3 with --live: upstream is unreachable or refuses.`,
  async run({ file, config, source, sink: requested, live }, deps) {
    const { env, out } = deps;
    if ((file === undefined) === (live === undefined)) {
      throw new UsageError('give a file with a record, or --live SOURCE');
    }
    if (file === undefined) {
      if (source !== undefined) throw new UsageError('--source: --live names the source already');
      return await previewLive({ config, source: live ?? '', sink: requested }, deps);
    }
    const plan = await planToLook(readConfigToLook(config, env).config);
    const stream = chosenStream(plan, source);
    refuseUnknown(
      'sink',
      requested,
      plan.sinks.map(({ name }) => name),
    );
    const record = await readRecord(file);
    show({ plan, stream, record, sink: requested }, out);
    return 0;
  },
});

/** What is shown. */
interface Shown {
  readonly plan: Plan;
  readonly stream: Stream;
  readonly record: Uint8Array;
  /** Only the output for this sink; undefined: all. */
  readonly sink: string | undefined;
}

function show({ plan, stream, record, sink: requested }: Shown, out: CommandDeps['out']): void {
  const { event, sinks } = rehearse(plan, { stream, record, readAt: Date.now() });
  const facts = factLines([
    ['source', stream.source],
    ['stream', stream.name],
    ['uid', stream.kind === 'list' ? event.uid : given[stream.kind]],
  ]);
  const { ocsf } = maskedForAll(event, plan.routes);
  for (const line of [...facts, ...visibleJsonLines(ocsf)]) out(line);
  for (const sink of sinks) {
    if (requested !== undefined && requested !== sink.sink.name) continue;
    for (const line of sinkLines(sink, stream)) out(line);
  }
}

const liveWithinMs = 60_000;

/** Requests one record of the source, from the first of its streams that has one. */
async function previewLive(
  wish: { readonly config: string; readonly source: string; readonly sink: string | undefined },
  { env, out, err }: CommandDeps,
): Promise<ExitCode> {
  const config = await loadConfig(wish.config, { env });
  refuseUnknown('live', wish.source, Object.keys(config.sources));
  refuseUnknown('sink', wish.sink, Object.keys(config.sinks));
  await using tools = openTools(await openLog({ level: 'error', form: logForm(process.stderr) }));
  try {
    const plan = planFrom(config, tools);
    const source = plan.sources.find(({ name }) => name === wish.source);
    const streams = source?.streams ?? [];
    const [first] = streams;
    if (first === undefined) throw new UsageError(`--live: ${wish.source} has no stream`);
    if (first.kind === 'push') {
      throw new UsageError(
        `--live: upstream delivers ${wish.source} itself, so no record can be requested`,
      );
    }
    const each = source?.parents?.each;
    const ids = each !== undefined && 'ids' in each ? each.ids : [];
    if (first.kind === 'parents' && ids.length === 0) {
      throw new UsageError(
        `--live: the parents of ${wish.source} are known after reading only; preview the source that has them`,
      );
    }
    const signal = AbortSignal.timeout(liveWithinMs);
    for (const stream of streams.slice(0, streamsMax)) {
      if (stream.kind === 'push') continue;
      const record = await liveRecord(stream, ids, signal);
      if (record === null) continue;
      show({ plan, stream, record, sink: wish.sink }, out);
      return 0;
    }
    err(`upstream has no record of ${wish.source} now`);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    err(failureText(afterCheck(asExportError(error, `requesting a record of ${wish.source}`))));
    return 3;
  }
}

/** Streams of a source that are requested until one has a record. */
const streamsMax = 3;

/** For a uid that depends on more than the record. */
const given = {
  collection: 'given when a reading finds the change',
  parents: 'known when it is read from a parent, since the uid includes the parent’s id',
  push: 'known when it is delivered, since the uid includes the delivery’s id',
} as const;

function chosenStream({ sources }: WholePlan, name: string | undefined): Stream {
  const names = sources.map((source) => source.name);
  if (name === undefined && sources.length > 1) {
    throw new UsageError(`--source: say of which source the record is: ${names.join(', ')}`);
  }
  refuseUnknown('source', name, names);
  const source = sources.find((one) => name === undefined || one.name === name);
  const [stream] = source?.streams ?? [];
  if (stream !== undefined) return stream;
  throw new UsageError(`--source: ${source?.name} has no stream; its upstream needs companies`);
}

/** The bytes of one record, without surrounding white space. */
async function readRecord(file: string): Promise<Uint8Array> {
  const reported = cleanText(file === '-' ? 'standard input' : file, 200);
  let bytes: Buffer;
  try {
    bytes = file === '-' ? await buffer(process.stdin) : readFileSync(file);
  } catch (error) {
    throw new UsageError(`${reported} cannot be read: ${whyUnreadable(error)}`);
  }
  let record: unknown;
  try {
    record = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new UsageError(`${reported} is no JSON: ${cleanText(String(error), 300)}`);
  }
  if (Array.isArray(record)) {
    throw new UsageError(`${reported} holds a list of ${record.length}; give one of its records`);
  }
  return bytes.subarray(bytes[0] === 0xef ? 3 : 0);
}

const leftTexts = {
  unrouted: (source: string) => `nothing: no route leads here from ${source}`,
  filtered: () => 'nothing: where of its route leaves the event out',
} as const;

function sinkLines(rehearsal: SinkRehearsal, { source }: Stream): readonly string[] {
  const { sink, bytes, left, failed } = rehearsal;
  const head = (text: string) => `${painted(`${sink.name} (${kindOf(sink)})`, 'good')}  ${text}`;
  if (left !== null) return ['', head(leftTexts[left](source))];
  const sent = bytes ?? new Uint8Array(0);
  const notes = failed.map(
    (filter) => `where could not judge the event, and so lets it pass: ${cleanText(filter, 300)}`,
  );
  return [
    '',
    head(`${sent.length} bytes of ${sink.format.contentType}`),
    ...notes.map((note) => painted(note, 'warn')),
    ...visibleBytes(sent),
  ];
}

function kindOf({ definition, format }: SinkRehearsal['sink']): string {
  return `${definition.type}, ${format.name}`;
}
