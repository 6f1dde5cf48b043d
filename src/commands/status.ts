// `sluice status`: the status of each stream, the spool and each sink, from the stored state, whether a process
// runs with it here, elsewhere or nowhere. No secret is needed, except for a state in Kafka that no process of
// this machine has. For people: first what needs attention, then tables in the same order. With --json: the model
// of watch/status-facts.ts for scripts, in the order of the config. Only a running process knows the filters
// that could not judge events, so there are none without its status.listen.

import { ownOperator, type Stored } from '../operator/index.ts';
import { planToLook, type WholePlan } from '../run/index.ts';
import {
  commandOf,
  counted,
  errorCell,
  painted,
  sizeText,
  stateCell,
  tableLines,
  urgentFirst,
} from '../terminal/index.ts';
import { cleanText, spanText, untilText } from '../tools/index.ts';
import {
  endText,
  originText,
  type StoredStatus,
  type StoredStream,
  statusElsewhere,
  streamsAndSinks,
} from '../watch/index.ts';
import { askRunning, attentionLines, attentionOf, joinedStatus } from '../watch/running-status.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { companyOption, countsOf, planOf, refuseUnknownCompany } from './shared/company.ts';
import { type PartAtWork, shardsElsewhere, wholeAtWork } from './shared/parts.ts';
import { parentsText, rotationText } from './shared/stream-facts.ts';

/** Prints the status. */
export const status = defineCommand({
  name: 'status',
  about: 'show streams, spool and sinks, also while another process runs',
  options: { config: configOption, json: { about: 'as JSON' }, company: companyOption },
  more: `With --company: only the streams of this company; for each sink, the backlog, dead letters and time of this company.`,
  async run({ config: file, json, company }, deps) {
    const work = wholeAtWork(file, deps);
    const { parts, member, whole } = work;
    const { config, unread } = whole;
    const { out } = deps;
    const looked = await Promise.all(
      parts.map(async (part) => ({ part, plan: await planToLook(part.config) })),
    );
    refuseUnknownCompany(
      company,
      looked.map(({ plan }) => plan),
    );
    const isMember = member !== null;
    const seen = await Promise.all(looked.map((one) => statusOf(one, { company, isMember })));
    const joined = joinedStatus(seen.map(({ shown }) => shown));
    const shards = member?.shards && { ...member.shards, elsewhere: shardsElsewhere(work) };
    const statusView: StoredStatus = {
      ...joined,
      ...(member !== null && { running: member.holder, standing_by: member.standing_by }),
      ...(shards !== undefined && { shards }),
      state_dir: config.state.dir,
    };
    const isHere = member !== null || seen.some(({ isCopy }) => !isCopy);
    const isAsked = statusView.running !== null && config.status !== null && isHere;
    const asked = isAsked ? await askRunning(config) : null;
    // Only the running process has them.
    const { filters, unread_times } = asked?.outcome === 'answered' ? asked.status : statusView;
    const reported = { ...statusView, filters, unread_times };
    if (json) out(JSON.stringify(reported, null, 2));
    else {
      const [missing = ''] = seen.every((part) => part.missing)
        ? seen.map((part) => part.missing)
        : [];
      const version = asked?.outcome === 'answered' ? asked.status.version : '';
      const lines = statusLines(reported, { file: config.file, missing, version });
      for (const line of [...lines, ...unreadLines(unread)]) out(line);
    }
    return 0;
  },
});

interface SeenPart extends Pick<Stored, 'missing' | 'isCopy'> {
  readonly shown: StoredStatus;
}

/** `isMember`: a process of this machine takes part in the state; it has the part, or is opening it here. */
async function statusOf(
  { part, plan }: { readonly part: PartAtWork; readonly plan: WholePlan },
  { company, isMember }: { readonly company: string | undefined; readonly isMember: boolean },
): Promise<SeenPart> {
  const { config, refused, isElsewhere, operator } = part;
  const configured = { plan: planOf(plan, company), state: config.state, refused };
  if (isElsewhere) return { shown: statusElsewhere(configured), missing: '', isCopy: false };
  const reader = isMember ? ownOperator(config) : operator;
  return await reader.status((stored) => {
    const { missing, isCopy } = stored;
    const shown = streamsAndSinks(stored.facts(), configured);
    return {
      ...{ missing, isCopy },
      shown: company === undefined ? shown : statusOfCompany(shown, stored, company),
    };
  });
}

function statusOfCompany(status: StoredStatus, stored: Stored, company: string): StoredStatus {
  const positions = new Map(status.sinks.map(({ name, position }) => [name, position]));
  const counts = countsOf(stored, company, positions);
  const sinks = status.sinks.map((sink) => {
    const { waiting = 0, refused = 0 } = counts.get(sink.name) ?? {};
    return { ...sink, backlog: waiting, dead_letters: refused };
  });
  // Streams of other companies are in the config too.
  return { ...status, sinks, orphans: { ...status.orphans, streams: [] } };
}

function statusLines(
  statusView: StoredStatus,
  {
    file,
    missing,
    version,
  }: { readonly file: string; readonly missing: string; readonly version: string },
): readonly string[] {
  const { running, spool } = statusView;
  const absent = missing !== '' && running === null;
  const size =
    spool.bytes === null ? '' : `${sizeText(spool.bytes)} of ${sizeText(spool.max_bytes)}, `;
  const oldest = spool.oldest_at === null ? '' : `, the oldest since ${spool.oldest_at}`;
  return [
    running === null
      ? painted(cleanText(`not running${missing}`, 1_000), absent ? 'warn' : 'dim')
      : `running: ${cleanText(running, 200)}${shardsText(statusView)}`,
    ...(version === '' ? [] : [`version: ${cleanText(version, 100)}`]),
    // If nothing is known, the status is not ok.
    ...(absent
      ? []
      : ['', ...attentionLines(attentionOf(statusView, { command: commandOf(file) }))]),
    '',
    ...streamTable(statusView),
    ...parentLines(statusView),
    '',
    `spool: ${size}events held: ${spool.events}${oldest}`,
    '',
    ...sinkTable(statusView),
    ...endLines(statusView),
    ...orphanLines(statusView),
  ];
}

/** Which shards are here, and where the others are shown. */
function shardsText({ shards, standing_by: standsBy = null }: StoredStatus): string {
  const all = 'sluice cluster shows every process';
  if (shards === undefined) return standsBy === null ? '' : `, which is on standby; ${all}`;
  const { owned, elsewhere } = shards;
  const own = owned.length === 0 ? ', which is on standby' : `, with ${shardNames(owned)}`;
  const runs = elsewhere.length === 1 ? 'runs in another process' : 'run in other processes';
  return elsewhere.length === 0 ? own : `${own}; ${shardNames(elsewhere)} ${runs}: ${all}`;
}

function shardNames(shards: readonly number[]): string {
  return `shard${shards.length === 1 ? '' : 's'} ${shards.join(', ')}`;
}

/** A line for each stream, below their heading. */
export function streamTable({ streams }: Pick<StoredStatus, 'streams'>): readonly string[] {
  return tableLines(
    ['STREAM', 'ORDER', 'CHECKPOINT', 'CAUGHT UP', 'STATE', 'NEXT POLL', 'LAST ERROR'],
    urgentFirst(streams).map((stream) => [
      stream.name,
      stream.order ?? '-',
      stream.checkpoint_at ?? '-',
      stream.lag_ms === null ? '-' : `${spanText(stream.lag_ms)} ago`,
      stateCell(stream.ended === true ? 'ended' : stream.state, stream.error),
      nextPollText(stream),
      errorCell(stream.error),
    ]),
  );
}

function parentLines({ streams }: StoredStatus): readonly string[] {
  const lines = streams.flatMap(({ name, parents }) =>
    parents === undefined
      ? []
      : [`${name}: ${parentsText(parents)}; rotation: ${rotationText(parents)}`],
  );
  return lines.length === 0 ? [] : ['', ...lines];
}

function nextPollText({ waits_for: what, next_poll_at: at }: StoredStream): string {
  if (what !== null) return `with ${what}`;
  if (at === null) return '-';
  return untilText(Date.parse(at), Date.now(), 'now');
}

/** As well, for each sink. */
export function sinkTable({ sinks }: Pick<StoredStatus, 'sinks'>): readonly string[] {
  return tableLines(
    ['SINK', 'TYPE', 'POSITION', 'BACKLOG', 'ALL UP TO', 'DEAD LETTERS', 'STATE', 'LAST ERROR'],
    urgentFirst(sinks).map(
      ({ name, type, position, backlog, up_to, dead_letters, state, error }) => [
        name,
        type,
        String(position),
        String(backlog),
        up_to ?? '-',
        dead_letters === 0 ? '0' : { text: String(dead_letters), mood: 'warn' },
        stateCell(state, error),
        errorCell(error),
      ],
    ),
  );
}

/** A warning that placeholders are not the real secrets. */
function unreadLines(unread: readonly string[]): readonly string[] {
  if (unread.length === 0) return [];
  const reported = cleanText([...new Set(unread)].join(', '), 300);
  return ['', painted(`not set here, and not needed to look: ${reported}`, 'dim')];
}

/** The upstreams that end, and when. */
function endLines({ upstreams }: StoredStatus): readonly string[] {
  const lines = upstreams.flatMap((one) => {
    const text = endText(one);
    return text === null
      ? []
      : [cleanText(`upstream ${one.name} ${text}: ${originText(one)}`, 400)];
  });
  return lines.length === 0 ? [] : ['', ...lines];
}

function orphanLines({ orphans, removed_sinks: removed }: StoredStatus): readonly string[] {
  const lines = [
    ...orphans.streams.map((name) => `stream ${name} has a checkpoint and is not in the config`),
    ...removed.map(({ name, kept, kept_until: until, pending }) =>
      kept
        ? `sink ${name} is not in the config: ${counted(pending, 'event')} kept for it${until === null ? '' : ` until ${until}`}`
        : `sink ${name} has a position and is not in the config: no page waits for it`,
    ),
  ];
  const clean = lines.map((line) => painted(cleanText(line, 300), 'warn'));
  return lines.length === 0 ? [] : ['', ...clean];
}
