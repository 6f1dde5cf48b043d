// The tables and lists of the page, from the status that the server sends. Narrow tables become cards, so each cell
// carries the title of its column.

import { make, visible } from './dom.js';
import { meter, moodOf, sign } from './journey.js';
import { ago, count, number, rate, size, span } from './units.js';

const streamHeads = [
  'Stream',
  'Now',
  'Rate',
  'Records',
  'Last poll',
  'Lag',
  'Order',
  'Checkpoint',
  'Budget',
];

/** The table of streams. */
export function streamTable(streams, now) {
  const rows = streams.map((stream) => ({
    mood: moodOf(stream),
    retry: stream.name,
    cells: [
      stream.name,
      doingOf(stream, now),
      rate(stream.records_per_s),
      number(stream.records),
      ago(stream.polled_at, now),
      lagOf(stream),
      orderOf(stream.order),
      ago(stream.checkpoint_at, now),
      budgetText(stream.budget),
    ],
    more: errorParts(stream.error),
  }));
  return table(streamHeads, rows);
}

/** The state of a stream, or the reason and end of its wait. */
function doingOf({ state, waits_for, next_poll_at }, now) {
  if (state === 'polling') return waits_for === null ? 'polling' : `waits for ${waits_for}`;
  const s = next_poll_at === null ? 0 : Math.ceil((Date.parse(next_poll_at) - now) / 1000);
  if (s <= 0) return state === 'halted' ? 'halted' : `waits for ${waits_for}`;
  const action = { halted: 'halted; next poll', retrying: 'retry', waiting: 'next poll' };
  return `${action[state]} in ${span(s * 1000)}`;
}

/** A shorter lag is about the time between two polls. */
const upToDateMs = 2_000;

function lagOf({ lag_ms, caught_up_at }) {
  if (lag_ms === null) return 'not known yet';
  if (caught_up_at === null) return `${span(lag_ms)}, first full scan`;
  return lag_ms < upToDateMs ? 'up to date' : span(lag_ms);
}

function orderOf(order) {
  return order === 'unknown' ? 'not known yet' : (order?.replaceAll('_', ' ') ?? '–');
}

function budgetText(budget) {
  if (budget === null) return '–';
  const { wait_ms, limit, remaining } = budget;
  const left =
    remaining === null
      ? ''
      : limit === null
        ? `${number(remaining)} left`
        : `${number(remaining)} of ${number(limit)} left`;
  const wait = wait_ms > 0 ? `wait ${span(wait_ms)}` : '';
  return [left, wait].filter((text) => text !== '').join(', ') || '–';
}

const sinkHeads = [
  'Sink',
  'Now',
  'Rate',
  'Backlog',
  'Drained in',
  'All up to',
  'Delivered',
  'Position',
  'Retries',
  'Dead letters',
];

/** The table of sinks. */
export function sinkTable(sinks, now) {
  const rows = sinks.map((sink) => ({
    mood: moodOf(sink),
    retry: sink.name,
    kind: sink.type,
    cells: [
      sink.name,
      sink.state === 'idle' ? 'waits for events' : sink.state,
      rate(sink.events_per_s),
      number(sink.backlog),
      drainedText(sink),
      sink.up_to === null ? 'not known' : ago(sink.up_to, now),
      number(sink.delivered),
      number(sink.position),
      number(sink.retries),
      number(sink.dead_letters),
    ],
    more: [...errorParts(sink.error), ...deadLetterParts(sink, now)],
  }));
  return table(sinkHeads, rows);
}

function drainedText({ backlog, drained_in_ms }) {
  if (backlog === 0) return 'drained';
  if (drained_in_ms === null) return 'not foreseeable';
  return drained_in_ms < 1000 ? 'at once' : span(drained_in_ms);
}

function deadLetterParts({ name, dead_letters, dead_letter_reasons }, now) {
  if (dead_letters === 0) return [];
  const reasons = dead_letter_reasons.map(({ reason, count: events, last_at }) =>
    make(
      'li',
      {},
      make('strong', {}, `${number(events)} ×`),
      make('span', {}, ` ${reason} `),
      make('span', { class: 'quiet' }, ago(last_at, now)),
    ),
  );
  return [
    make(
      'details',
      {},
      make('summary', {}, `${count(dead_letters, 'dead letter')}: reasons`),
      make('ul', {}, ...reasons),
      make('p', { class: 'quiet' }, 'To list, retry or drop them: '),
      make('code', {}, `sluice dead-letters list --sink ${name}`),
    ),
  ];
}

/** A table of these rows, each with a sign of its mood; `retry` is the stream or sink of the row's button. */
export function table(heads, rows) {
  const bodies = rows.map(({ mood, kind, retry, cells, more }) => {
    const [name, ...rest] = cells;
    const tds = rest.map((text, index) => cellOf('td', heads[index + 1], text));
    const called = make(
      'th',
      { scope: 'row' },
      sign(mood),
      make('span', {}, name),
      kind === undefined ? null : make('span', { class: 'quiet' }, ` ${kind}`),
      retry === undefined ? null : retryButton(retry),
    );
    const cell = () => make('td', { colspan: heads.length }, ...more);
    return make(
      'tbody',
      { class: mood },
      make('tr', {}, called, ...tds),
      more.length === 0 ? null : make('tr', { class: 'more-of-it' }, cell()),
    );
  });
  const head = heads.map((text) => cellOf('th', text, text));
  return make('table', {}, make('thead', {}, make('tr', {}, ...head)), ...bodies);
}

/** The page handles the click. */
function retryButton(name) {
  const title = `Retry ${visible(name)} now, without the rest of its wait`;
  const labels = { title, 'aria-label': title };
  return make('button', { type: 'button', class: 'retry', 'data-retry': name, ...labels });
}

/** Columns of numbers, aligned by digit. */
const numbers = new Set([
  'Rate',
  'Records',
  'Backlog',
  'Delivered',
  'Position',
  'Retries',
  'Dead letters',
]);

function cellOf(name, head, text) {
  const scope = name === 'th' ? { scope: 'col' } : { 'data-head': head };
  return make(name, { ...scope, class: numbers.has(head) ? 'number' : null }, text);
}

/** An error in full. */
export function errorParts(error) {
  if (error === null) return [];
  const { code, message, next, upstream_code, request_id, trace_id } = error;
  // Some messages contain these ids already.
  const ids = Object.entries({ upstream_code, request_id, trace_id })
    .filter(([, id]) => typeof id === 'string' && !message.includes(id))
    .map(([name, id]) => make('code', { class: 'ids' }, `${name} ${id}`));
  return [
    make(
      'p',
      { class: 'error' },
      make('code', {}, code),
      make('span', {}, ` ${message} `),
      ...ids,
      make('span', { class: 'next' }, next),
    ),
  ];
}

/** The content of the spool. */
export function spoolFacts(spool, now) {
  const share = spool.bytes / spool.max_bytes;
  return [
    fact('Stored', `${number(spool.events)} events`),
    fact(
      'Size',
      `${size(spool.bytes)} of ${size(spool.max_bytes)}`,
      meter(share, 'share of the spool used'),
    ),
    fact('Oldest event read', spool.events === 0 ? 'no event stored' : ago(spool.oldest_at, now)),
    fact('Full in', spool.full_in_ms === null ? 'not foreseeable' : span(spool.full_in_ms)),
    fact('Events so far', number(spool.end)),
  ];
}

function fact(name, value, more = null) {
  return make('div', {}, make('dt', { class: 'quiet' }, name), make('dd', {}, value, more));
}

/** Shown limits of an upstream; the tightest come first. */
const limitsMax = 6;

/** Limits and ends of upstreams. */
export function upstreamParts({ upstreams }) {
  return upstreams.map(({ name, base_url, throttles, end_of_life, ...end }) =>
    make(
      'div',
      { class: 'entry' },
      make('h3', {}, name, make('span', { class: 'quiet' }, ` ${base_url}`)),
      throttles.length === 0 ? make('p', { class: 'quiet' }, 'No known limit.') : null,
      ...throttles
        .slice(0, limitsMax)
        .map((budget) =>
          make(
            'p',
            { class: 'limit' },
            make('code', {}, budget.path === '*' ? 'all paths' : budget.path),
            make('span', {}, budgetText(budget)),
          ),
        ),
      throttles.length > limitsMax
        ? make('p', { class: 'quiet' }, 'Other paths have more requests left.')
        : null,
      endPart(end),
      ...end_of_life.map(endOfLife),
    ),
  );
}

/** Days before its end from which an upstream needs attention. */
const noticeDays = 90;

function endPart({ ends_at, days_left }) {
  if (ends_at === null) return null;
  const date = ends_at.slice(0, 10);
  const days = days_left === 0 ? 'less than a day' : count(days_left, 'day');
  const text = days_left < 0 ? `Ended on ${date}.` : `Ends on ${date}, in ${days}.`;
  return make('p', { class: days_left < noticeDays ? 'warn-text' : 'quiet' }, text);
}

function endOfLife({ endpoint, deprecation_at, sunset_at }) {
  const when = sunset_at ?? deprecation_at;
  const date = when === null ? 'without a date' : `as of ${when.slice(0, 10)}`;
  return make('p', { class: 'warn-text' }, `${endpoint} is deprecated or ends, ${date}.`);
}

/** Pairs of a source and its successor. */
export function successionParts({ successions }) {
  return successions.map((pair) => {
    const alone = `only ${pair.source}: ${number(pair.only_old)}, only ${pair.successor}: ${number(pair.only_new)}`;
    const differs =
      pair.fields.length === 0 ? 'no field differs' : `differing fields: ${pair.fields.join(', ')}`;
    return make(
      'div',
      { class: 'entry' },
      make(
        'p',
        { class: 'limit' },
        make('strong', {}, `${pair.source} to ${pair.successor}`),
        make('span', {}, pair.phase.replaceAll('_', ' ')),
      ),
      make('p', {}, `${number(pair.matched)} matched, ${alone}, ${number(pair.waiting)} wait`),
      make('p', { class: 'quiet' }, differs),
      pair.held
        ? make(
            'p',
            { class: 'warn-text' },
            'Too few records match: records without a match are not delivered.',
          )
        : null,
      ...(pair.phase === 'shadow' ? pair.not_ready : []).map((why) =>
        make('p', { class: 'quiet' }, `Not ready: ${why}.`),
      ),
    );
  });
}

/** Conditions of sources: gaps, resets and others. */
export function conditionParts({ conditions }, now) {
  if (conditions.length === 0) {
    return [make('p', { class: 'quiet' }, 'No gap, reset or lost right since the start.')];
  }
  return conditions.map(({ condition, stream, observed_at, message }) =>
    make(
      'div',
      { class: 'entry' },
      make(
        'p',
        { class: 'limit' },
        make('code', {}, condition),
        make('span', { class: 'quiet' }, ago(observed_at, now)),
      ),
      // Most messages begin with the stream.
      make('p', {}, message.startsWith(stream) ? null : make('strong', {}, `${stream} `), message),
    ),
  );
}

/** One item of the attention list. */
export function matterPart({ mood, who, what, message, next }) {
  return make(
    'div',
    { class: `matter ${mood}` },
    sign(mood),
    make(
      'div',
      {},
      make('p', {}, make('strong', {}, who), ` ${what}`),
      message === null ? null : make('p', {}, message),
      next === null ? null : make('p', { class: 'quiet' }, next),
    ),
  );
}
