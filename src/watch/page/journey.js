// The journey as a picture: upstreams, sources, spool and sinks as boxes in the order in which an event passes them, with pipes between
// that move while events do and turn red where they cannot. On a narrow screen the same boxes stand below each other.

import { fill, make, number, rate, size } from './dom.js';

/** More boxes than this in a column are only counted; those that need attention come first. */
const boxesMax = 8;

/** Draws the picture. */
export function drawJourney(parent, state) {
  const upstreams = state.upstreams.map(({ name, streams, streams_failing, throttles }) => ({
    name,
    mood: upstreamMood(streams, streams_failing, throttles),
    facts: [streams_failing === 0 ? 'answers' : `${streams_failing} of ${streams} streams failing`],
    moving: flow(state.streams.filter(({ upstream }) => upstream === name)),
  }));
  const spool = {
    name: 'spool',
    mood: state.spool.well ? 'good' : 'bad',
    facts: [size(state.spool.bytes), `${number(state.spool.events)} events`],
    share: state.spool.bytes / state.spool.max_bytes,
    moving: state.records_per_s,
  };
  const sinks = state.sinks.map((sink) => ({
    name: sink.name,
    mood: moodOf(sink),
    facts: [rate(sink.events_per_s), `${number(sink.backlog)} to go`],
    moving: sink.events_per_s,
  }));
  fill(
    parent,
    column('Upstreams', upstreams, 'out'),
    column('Sources', sourcesOf(state), 'through'),
    column('Held', [spool], 'end'),
    column('Sinks', sinks, 'in'),
  );
}

function upstreamMood(streams, failing, throttles) {
  if (failing > 0 && failing === streams) return 'bad';
  const waits = throttles.some(({ wait_ms }) => wait_ms > noticedWaitMs);
  return failing > 0 || waits ? 'warn' : 'good';
}

/** Shorter waits are the usual spacing of requests. */
const noticedWaitMs = 5_000;

/** How a stream or sink stands, as a colour. */
export function moodOf({ well, error, state }) {
  if (!well || state === 'halted' || state === 'refused') return 'bad';
  return error === null ? 'good' : 'warn';
}

const gravity = { bad: 0, warn: 1, good: 2 };

function sourcesOf({ streams }) {
  const sources = Map.groupBy(streams, ({ source }) => source);
  return Array.from(sources, ([name, members]) => {
    const moods = members.map(moodOf).toSorted((a, b) => gravity[a] - gravity[b]);
    const count = members.length === 1 ? [] : [`${members.length} streams`];
    return { name, mood: moods[0], facts: [rate(flow(members)), ...count], moving: flow(members) };
  });
}

function flow(members) {
  const total = members.reduce(
    (sum, { records_per_s = 0, events_per_s = 0 }) => sum + records_per_s + events_per_s,
    0,
  );
  return Math.round(total * 10) / 10;
}

/** A column of boxes; pipes lead `out` to the next column, `in` from the one before, or `through`. */
function column(title, boxes, pipes) {
  const sorted = boxes.toSorted((a, b) => gravity[a.mood] - gravity[b.mood]);
  const shown = boxes.length <= boxesMax ? boxes : sorted.slice(0, boxesMax);
  const rest = boxes.length - shown.length;
  const rows = shown.map((shape) =>
    make(
      'div',
      { class: 'row' },
      pipes === 'in' || pipes === 'through' ? pipe(shape) : null,
      box(shape),
      pipes === 'out' || pipes === 'through' ? pipe(shape) : null,
    ),
  );
  return make(
    'div',
    { class: `column ${pipes}` },
    make('h3', {}, title),
    make('div', { class: 'rows' }, ...rows),
    rest === 0 ? null : make('p', { class: 'quiet' }, `and ${rest} more`),
  );
}

const signs = { good: '●', warn: '▲', bad: '■' };
const words = { good: 'well', warn: 'failing for now', bad: 'needs attention' };

/** Colour, shape and word together, so that none is needed alone. */
export function sign(mood) {
  return make(
    'span',
    { class: `sign ${mood}` },
    make('span', { 'aria-hidden': 'true' }, signs[mood]),
    make('span', { class: 'unseen' }, words[mood]),
  );
}

function box({ name, mood, facts, share }) {
  return make(
    'div',
    { class: `box ${mood}` },
    make('p', { class: 'name' }, sign(mood), make('span', {}, name)),
    make('p', { class: 'quiet' }, facts.join(' · ')),
    share === undefined
      ? null
      : make('meter', {
          min: 0,
          max: 1,
          high: 0.8,
          value: share,
          'aria-label': 'share of the spool used',
        }),
  );
}

/** Moves while events do, and shows where they cannot. */
function pipe({ mood, moving }) {
  return make('div', {
    class: `pipe ${mood}${moving > 0 ? ' moving' : ''}`,
    'aria-hidden': 'true',
  });
}
