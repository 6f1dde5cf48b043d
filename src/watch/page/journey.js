// The journey as a picture: boxes for upstreams, sources, spool and sinks, in the order in which an event passes them. Pipes
// between them move while events pass, are wider with more events, and are broken at a failure. A narrow screen stacks the
// boxes.

import { fill, make } from './dom.js';
import { count, number, rate, size } from './units.js';

/** Boxes in a column; the rest is counted. Boxes that need attention come first. */
const boxesMax = 8;

/** The last drawn pipes, for a change of the size only. */
let pipes = [];

/** Draws the picture, also after each change of its size. */
export function keepJourney(parent) {
  new ResizeObserver(() => drawPipes(parent)).observe(parent);
}

/** Draws the picture. */
export function drawJourney(parent, state) {
  const columns = [
    ['Upstreams', state.upstreams.map(upstreamBox)],
    ['Streams', state.sources.map(sourceBox)],
    ['Spool', [spoolBox(state)]],
    ['Sinks', state.sinks.map(sinkBox)],
  ].map(([title, boxes]) => ({
    ...{ title, all: boxes.length },
    boxes: worstFirst(boxes, boxesMax, ({ mood }) => mood),
  }));
  fill(parent, make('svg:svg', { class: 'pipes', 'aria-hidden': 'true' }), ...columns.map(column));
  const shown = new Map(columns.flatMap(({ boxes }) => boxes.map((box) => [box.key, box])));
  pipes = [
    ...state.sources.map(({ name, upstream }) => [`upstream ${upstream}`, `source ${name}`]),
    ...state.sources.map(({ name }) => [`source ${name}`, 'spool']),
    ...state.sinks.map(({ name }) => ['spool', `sink ${name}`]),
  ]
    .filter((ends) => ends.every((key) => shown.has(key)))
    .map(([from, to]) => {
      const { mood, moving } = shown.get(from === 'spool' ? to : to === 'spool' ? from : to);
      return { from, to, mood, moving };
    });
  drawPipes(parent);
}

function upstreamBox({ name, streams, streams_failing, records_per_s, throttles }) {
  const failing = streams_failing > 0;
  const waits = throttles.some(({ wait_ms }) => wait_ms > noticedWaitMs);
  const mood = failing && streams_failing === streams ? 'bad' : failing || waits ? 'warn' : 'good';
  const fact = failing
    ? `${number(streams_failing)} of ${count(streams, 'stream')} failing`
    : waits
      ? 'requires a wait'
      : 'responds';
  return { key: `upstream ${name}`, name, mood, facts: [fact], moving: records_per_s };
}

/** Shorter waits are the usual spacing of requests. */
const noticedWaitMs = 5_000;

function sourceBox({ name, streams, streams_failing, streams_unwell, records_per_s }) {
  const mood = streams_unwell > 0 ? 'bad' : streams_failing > 0 ? 'warn' : 'good';
  const facts = [rate(records_per_s), count(streams, 'stream')];
  return { key: `source ${name}`, name, mood, facts, moving: records_per_s };
}

function spoolBox({ spool, records_per_s }) {
  return {
    key: 'spool',
    name: size(spool.bytes),
    mood: spool.well ? 'good' : 'bad',
    facts: [`${number(spool.events)} events stored`],
    share: spool.bytes / spool.max_bytes,
    moving: records_per_s,
  };
}

function sinkBox(sink) {
  return {
    key: `sink ${sink.name}`,
    name: sink.name,
    mood: moodOf(sink),
    facts: [
      rate(sink.events_per_s),
      sink.backlog === 0 ? 'up to date' : `${number(sink.backlog)} to go`,
    ],
    moving: sink.events_per_s,
  };
}

/** The status of a stream or sink as a colour. */
export function moodOf({ well, error, state, dead_letters = 0 }) {
  if (!well || state === 'halted' || state === 'refused') return 'bad';
  return error === null && dead_letters === 0 ? 'good' : 'warn';
}

const gravity = { bad: 0, warn: 1, good: 2 };

/** All of a short list; else the first `most`, with those that need attention first. */
export function worstFirst(all, most, mood) {
  if (all.length <= most) return all;
  return all.toSorted((a, b) => gravity[mood(a)] - gravity[mood(b)]).slice(0, most);
}

function column({ title, boxes, all }) {
  return make(
    'div',
    { class: 'column' },
    make('h3', {}, title),
    make('div', { class: 'boxes' }, ...boxes.map(box)),
    all > boxes.length
      ? make('p', { class: 'quiet' }, `and ${number(all - boxes.length)} more`)
      : null,
  );
}

function box({ key, name, mood, facts, share }) {
  return make(
    'div',
    { class: `box ${mood}`, 'data-key': key },
    make('p', { class: 'name' }, sign(mood), make('span', {}, name)),
    make('p', { class: 'quiet' }, facts.join(' · ')),
    share === undefined ? null : meter(share, 'share of the spool used'),
  );
}

/** A meter of a share; a full one is bad. */
export function meter(share, label) {
  return make('meter', {
    min: 0,
    max: 1,
    low: 0.6,
    high: 0.85,
    optimum: 0,
    value: share,
    'aria-label': label,
  });
}

const signs = { good: '●', warn: '▲', bad: '■' };
const words = { good: 'well', warn: 'to check', bad: 'needs attention' };

/** Colour, shape and word together, so that a reader needs only one of them. */
export function sign(mood) {
  return make(
    'span',
    { class: `sign ${mood}` },
    make('span', { 'aria-hidden': 'true' }, signs[mood]),
    make('span', { class: 'unseen' }, words[mood]),
  );
}

/** Each from the right edge of one box to the left edge of another; many at one edge spread over it. */
function drawPipes(parent) {
  const svg = parent.querySelector('.pipes');
  if (svg === null) return;
  const room = parent.getBoundingClientRect();
  const [left, top] = [room.left + parent.clientLeft, room.top + parent.clientTop];
  const places = new Map(
    [...parent.querySelectorAll('.box')].map((node) => [
      node.dataset.key,
      node.getBoundingClientRect(),
    ]),
  );
  svg.setAttribute('viewBox', `0 0 ${parent.clientWidth} ${parent.clientHeight}`);
  const endsAt = (side, key) => pipes.filter((pipe) => pipe[side] === key);
  const y = (side, pipe) => {
    const place = places.get(pipe[side]);
    const alike = endsAt(side, pipe[side]);
    return place.top - top + (place.height * (alike.indexOf(pipe) + 1)) / (alike.length + 1);
  };
  const paths = pipes
    .filter(({ from, to }) => places.has(from) && places.has(to))
    .flatMap((pipe) => {
      const [x1, y1] = [places.get(pipe.from).right - left, y('from', pipe)];
      const [x2, y2] = [places.get(pipe.to).left - left, y('to', pipe)];
      const bend = (x2 - x1) / 2;
      const d = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
      const width = 2 + Math.min(4, Math.log10(1 + pipe.moving));
      const moves = pipe.mood !== 'bad' && pipe.moving > 0;
      return [
        make('svg:path', { class: `pipe ${pipe.mood}`, d, 'stroke-width': width }),
        make('svg:path', { class: moves ? 'flow' : 'still', d, 'stroke-width': width }),
      ];
    });
  fill(svg, ...paths);
}
