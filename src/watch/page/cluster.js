// The whole of a state in Kafka: every process, what each sink has of what each process holds, and the streams of all. It is told
// every few seconds, by what is committed in Kafka; what this process alone does is told each second beside it.

import { at, fill } from './dom.js';
import { moodOf } from './journey.js';
import { errorParts, matterPart, table } from './parts.js';
import { ago, count, number, span } from './units.js';

/** Draws it, with how long ago it was so. */
export function drawCluster(told, now) {
  const { standing, error } = told;
  at('cluster').hidden = false;
  at('to-cluster').hidden = false;
  fill(at('cluster-matters'), ...matters(told).map(matterPart));
  if (standing === null) {
    fill(at('cluster-told'), error === null ? 'reading Kafka' : 'not seen yet');
    return;
  }
  fill(at('cluster-told'), `${summary(told)}; ${seen(told, now)}`);
  fill(at('cluster-processes'), processTable(told, now));
  fill(at('cluster-sinks'), sinkTable(standing, now));
  fill(at('cluster-streams-title'), streamsTitle(told));
  fill(at('cluster-streams'), streamTable(standing, now));
}

/** Who it is, as far as it says. */
export function calledOf({ instance, host, address, pid }) {
  const where = host ?? address;
  return instance ?? `process ${pid ?? 'unknown'} on ${where}`;
}

function summary({ standing: { prefix, processes, takeovers }, processes_total }) {
  const states = ['working', 'starting', 'standing by', 'drained'].flatMap((state) => {
    const many = processes.filter((one) => one.state === state).length;
    return many === 0 ? [] : [`${number(many)} ${state}`];
  });
  const shown =
    processes_total > processes.length
      ? `${number(processes.length)} of ${count(processes_total, 'process')}: `
      : '';
  return `${prefix}: ${shown}${states.join(', ') || 'no process'}; taken over ${count(takeovers, 'time')}`;
}

function seen({ at: seenAt, error }, now) {
  const old = ago(new Date(seenAt).toISOString(), now);
  return error === null ? `as of ${old}` : `seen last ${old}`;
}

function matters({ standing, error }) {
  return [
    ...(error === null
      ? []
      : [{ mood: 'warn', who: 'Kafka', what: 'does not tell how all stand', ...error }]),
    ...(standing === null || standing.unowned === null ? [] : [unownedMatter(standing)]),
    ...(standing?.processes.flatMap((one) => notRunningMatter(one, standing)) ?? []),
    ...(standing?.fenced.map(fencedMatter) ?? []),
  ];
}

function unownedMatter({ shards, unowned }) {
  return {
    mood: 'bad',
    who: shards === undefined ? 'The state' : shardsText(unowned.shards),
    what: 'is worked on by no process.',
    message: null,
    next: 'It is taken within a session where a process stands by; else start one, or let one in that is drained.',
  };
}

function notRunningMatter(one, { shards }) {
  if (one.not_running === undefined) return [];
  const what = shards === undefined ? 'the state' : shardsText(one.not_running);
  return [
    {
      mood: 'warn',
      who: calledOf(one),
      what: `owns ${what} and has not started to work on it.`,
      message: null,
      next: 'This passes once its worker has read the state. Where it stays, the log of that process says why.',
    },
  ];
}

function fencedMatter({ instance, host, pid, shards, at: since }) {
  const named = instance === null ? '' : `${instance}, `;
  return {
    mood: 'warn',
    who: `${named}process ${pid} on ${host}`,
    what: `is fenced: another one has ${shards === undefined ? 'the state' : shardsText(shards)} since ${since}.`,
    message: null,
    next: 'It had not ended in order: it was killed, frozen or cut off. What it may still write is refused.',
  };
}

function shardsText(shards) {
  return `shard${shards.length === 1 ? '' : 's'} ${shards.join(', ')}`;
}

function processTable({ standing: { processes, shards }, self }, now) {
  const heads = ['Process', 'Now', 'Host', 'Number', 'Started', 'Works since'];
  const rows = processes.map((one) => ({
    mood: one.state === 'drained' || one.not_running !== undefined ? 'warn' : 'good',
    kind: one.host === self.host && one.pid === self.pid ? 'this one' : undefined,
    cells: [
      calledOf(one),
      one.state,
      one.host ?? one.address,
      String(one.pid ?? 'unknown'),
      one.started_at === null ? 'not known' : ago(one.started_at, now),
      one.works_since === null ? '–' : ago(one.works_since, now),
      ...(shards === undefined ? [] : [one.shards.join(' ') || '–']),
    ],
    more: [],
  }));
  return table(shards === undefined ? heads : [...heads, 'Shards'], rows);
}

function sinkTable({ processes, unowned }, now) {
  const heads = ['Sink', 'Now', 'Process', 'Backlog', 'Position', 'All up to', 'Dead letters'];
  const owned = processes.map((one) => [calledOf(one), one.sinks]);
  const all = unowned === null ? owned : [['none', unowned.sinks], ...owned];
  const rows = all.flatMap(([process, sinks]) =>
    sinks.map((sink) => ({
      mood: moodOf({ ...sink, well: true }),
      kind: sink.type,
      cells: [
        sink.name,
        sink.state,
        process,
        number(sink.backlog),
        number(sink.position),
        sink.up_to === null ? 'not known' : ago(sink.up_to, now),
        number(sink.dead_letters),
      ],
      more: errorParts(sink.error),
    })),
  );
  return table(heads, rows);
}

function streamsTitle({ standing: { streams }, streams_total }) {
  const cut = streams.length < streams_total ? `, the ${streams.length} that need it most` : '';
  return `Streams of all processes: ${number(streams_total)}${cut}`;
}

function streamTable({ streams }, now) {
  const heads = ['Stream', 'Now', 'Caught up', 'Order', 'Checkpoint', 'Next poll'];
  const rows = streams.map((stream) => ({
    mood: moodOf({ ...stream, well: true }),
    cells: [
      stream.name,
      stream.waits_for === null ? stream.state : `waits for ${stream.waits_for}`,
      ago(stream.caught_up_at, now),
      stream.order?.replaceAll('_', ' ') ?? '–',
      ago(stream.checkpoint_at, now),
      nextPoll(stream, now),
    ],
    more: errorParts(stream.error),
  }));
  return table(heads, rows);
}

function nextPoll({ next_poll_at }, now) {
  if (next_poll_at === null) return '–';
  const ms = Date.parse(next_poll_at) - now;
  return ms > 0 ? `in ${span(ms)}` : 'now';
}
