// One screen of `sluice top`: facts about the running process, items that need attention, then streams and sinks in the
// same order, as many as fit. Pure; text from upstream is cleaned here.

import {
  type Cell,
  counted,
  errorCell,
  painted,
  sizeText,
  stateCell,
  tableLines,
  urgentFirst,
} from '../../terminal/index.ts';
import { cleanText, spanText } from '../../tools/index.ts';
import type { LiveStatus } from '../../watch/index.ts';
import { attentionLines } from '../../watch/running-status.ts';

/** Sinks are few and streams may be thousands: they get the room that is left, at least this. */
const streamRowsMin = 3;
/** Items that need attention use a third of the screen at most, with two lines each. */
const rowsPerMatter = 6;

/** The lines of a screen, for which there is room in `rows`. */
export function frameLines(statusView: LiveStatus, rows: number): readonly string[] {
  const most = Math.max(1, Math.floor(rows / rowsPerMatter));
  const head = [headLine(statusView), '', ...attentionLines(statusView.attention, { most }), ''];
  const tail = ['', spoolLine(statusView), '', ...sinkTable(statusView)];
  const room = Math.max(streamRowsMin, rows - head.length - tail.length - 2);
  return [...head, ...streamTable(statusView, room), ...tail].slice(0, rows);
}

function headLine({ at, started_at, ready, records_per_s, streams }: LiveStatus): string {
  const up = spanText(Date.parse(at) - Date.parse(started_at));
  const health = ready ? painted('ready', 'good') : painted('not ready', 'bad');
  return `sluice  ${health}  up ${up}  ${counted(streams.length, 'stream')}  ${records_per_s} records/s read  ${at}`;
}

function streamTable({ streams }: LiveStatus, room: number): readonly string[] {
  const shown = urgentFirst(streams).slice(0, room);
  const rest = streams.length - shown.length;
  return [
    ...tableLines(
      ['STREAM', 'STATE', 'ORDER', 'READ/S', 'LAG', 'WAITS FOR', 'LAST ERROR'],
      shown.map(({ name, state, order, records_per_s, lag_ms, waits_for, error }): Cell[] => [
        name,
        stateCell(state, error),
        order ?? '-',
        String(records_per_s),
        lag_ms === null ? '-' : spanText(lag_ms),
        waits_for ?? '-',
        errorCell(error),
      ]),
    ),
    ...(rest === 0 ? [] : [painted(`and ${rest} more`, 'dim')]),
  ];
}

function sinkTable({ sinks }: LiveStatus): readonly string[] {
  return tableLines(
    ['SINK', 'TYPE', 'STATE', 'SENT/S', 'BACKLOG', 'DRAINED IN', 'DEAD LETTERS', 'LAST ERROR'],
    urgentFirst(sinks).map((sink): Cell[] => [
      sink.name,
      sink.type,
      stateCell(sink.state, sink.error),
      String(sink.events_per_s),
      String(sink.backlog),
      sink.drained_in_ms === null ? '-' : spanText(sink.drained_in_ms),
      sink.dead_letters === 0 ? '0' : { text: String(sink.dead_letters), mood: 'warn' },
      errorCell(sink.error),
    ]),
  );
}

function spoolLine({ spool }: LiveStatus): string {
  const { bytes, max_bytes: bytesMax, events, full_in_ms: fullInMs } = spool;
  const full = fullInMs === null ? '' : `, full in ${spanText(fullInMs)}`;
  return cleanText(
    `spool: ${sizeText(bytes)} of ${sizeText(bytesMax)}, ${counted(events, 'event')} held${full}`,
    200,
  );
}
