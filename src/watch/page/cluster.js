// A state in Kafka as a whole: all processes, their sinks and their streams, as committed in Kafka. The server updates
// these every few seconds. The status of this process alone is updated each second.

import { at, fill } from './dom.js';
import { moodOf } from './journey.js';
import { errorParts, matterPart, table } from './parts.js';
import { ago, count, number, span } from './units.js';

/** Draws the cluster, with the age of the data. */
export function drawCluster(update, now) {
  const { status: statusView, error } = update;
  at('cluster').hidden = false;
  at('to-cluster').hidden = false;
  fill(at('cluster-matters'), ...matters(update).map(matterPart));
  if (statusView === null) {
    fill(at('cluster-note'), error === null ? 'reading Kafka' : 'not read yet');
    return;
  }
  fill(at('cluster-note'), `${summary(update)}; ${seen(update, now)}`);
  fill(at('cluster-processes'), processTable(update, now));
  fill(at('cluster-sinks'), sinkTable(statusView, now));
  fill(at('cluster-streams-title'), streamsTitle(update));
  fill(at('cluster-streams'), streamTable(statusView, now));
}

/** The name of a process: its instance, else number and host. */
export function calledOf({ instance, host, address, pid }) {
  const where = host ?? address;
  return instance ?? `process ${pid ?? 'unknown'} on ${where}`;
}

function summary({ status: { prefix, processes, takeovers }, processes_total }) {
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
  return error === null ? `as of ${old}` : `last read ${old}`;
}

function matters({ status: statusView, error }) {
  return [
    ...(error === null
      ? []
      : [
          {
            mood: 'warn',
            who: 'Kafka',
            what: 'does not respond; the cluster status is old',
            ...error,
          },
        ]),
    ...(statusView === null || statusView.unowned === null ? [] : [unownedMatter(statusView)]),
    ...(statusView?.processes.flatMap((one) => notRunningMatter(one, statusView)) ?? []),
    ...(statusView?.fenced.map(fencedMatter) ?? []),
  ];
}

function unownedMatter({ shards, unowned }) {
  return {
    mood: 'bad',
    who: shards === undefined ? 'The state' : shardsText(unowned.shards),
    what:
      shards === undefined || unowned.shards.length === 1 ? 'has no process.' : 'have no process.',
    message: null,
    next: 'A process on standby takes over within a session. If there is none, start a process, or undrain one: sluice cluster undrain INSTANCE.',
  };
}

function notRunningMatter(one, { shards }) {
  if (one.not_running === undefined) return [];
  const what = shards === undefined ? 'the state' : shardsText(one.not_running);
  return [
    {
      mood: 'warn',
      who: calledOf(one),
      what: `owns ${what} and does not work on ${one.not_running.length > 1 ? 'them' : 'it'} yet.`,
      message: null,
      next: 'This ends when the worker has read the state. If it lasts, the log of that process has the reason.',
    },
  ];
}

function fencedMatter({ instance, host, pid, shards, at: since }) {
  const named = instance === null ? '' : `${instance}, `;
  return {
    mood: 'warn',
    who: `${named}process ${pid} on ${host}`,
    what: `is fenced: another process has ${shards === undefined ? 'the state' : shardsText(shards)} since ${since}.`,
    message: null,
    next: 'The process was killed, frozen or cut off, without a clean shutdown. Kafka refuses its writes.',
  };
}

function shardsText(shards) {
  return `shard${shards.length === 1 ? '' : 's'} ${shards.join(', ')}`;
}

function processTable({ status: { processes, shards }, self }, now) {
  const heads = ['Process', 'Now', 'Host', 'Number', 'Started', 'Working since'];
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

function streamsTitle({ status: { streams }, streams_total }) {
  const cut = streams.length < streams_total ? `, the ${streams.length} most urgent` : '';
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
