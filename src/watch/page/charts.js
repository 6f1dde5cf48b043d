// The last hour as charts (uPlot, https://github.com/leeoniya/uPlot). One crosshair moves in all charts, by mouse, finger or
// arrow keys, and the legend has its values. The time axis grows up to an hour after a start. Colours come from the style
// sheet, so a change of colours draws the charts again.

import { fill, make } from './dom.js';
import { clock, rate, short, size } from './units.js';

const { uPlot } = globalThis;
const spansMin = [1, 5, 15, 30, 60];
/** The line breaks after this number of steps without a sample. */
const stepsMissedMax = 3;
/** Lines that a reader can distinguish in one chart. */
const linesMax = 6;

const readingRate = { unit: rate, tick: short };
const readingSize = {
  unit: size,
  tick: size,
  incrs: Array.from({ length: 50 }, (_, at) => 2 ** at),
};
const readingCount = { unit: short, tick: short };

/** The drawn charts, by title. */
const drawn = new Map();

/** Draws all charts; `stepMs` is the time between two samples. */
export function drawCharts(parent, samples, stepMs) {
  if (samples.length < 2) {
    const soon = 'The first points appear in a few seconds.';
    fill(parent, make('p', { class: 'quiet soon' }, soon));
    drawn.clear();
    return;
  }
  const sinks = busiest(samples.at(-1)?.sinks ?? {});
  const perSink = (value) => sinks.map((name) => [name, (sample) => value(sample.sinks[name])]);
  const charts = [
    ['Read', readingRate, [['all streams', ({ read }) => read]]],
    ['Sent', readingRate, perSink((sink) => sink?.rate ?? null)],
    ['Backlog', readingCount, perSink((sink) => sink?.backlog ?? null)],
    ['Spool', readingSize, [['stored', ({ spool_bytes }) => spool_bytes]]],
  ];
  for (const node of parent.querySelectorAll('.soon')) node.remove();
  for (const [title, reading, lines] of charts) {
    const key = lines.map(([name]) => name).join('\n');
    let chart = drawn.get(title);
    if (chart?.key !== key) {
      chart?.remove();
      chart = { key, ...open(parent, title, reading, lines) };
      drawn.set(title, chart);
    }
    chart.show(dataOf(samples, lines, stepMs));
  }
}

/** Draws all charts again at the next sample, with changed colours. */
export function forgetCharts() {
  for (const chart of drawn.values()) chart.remove();
  drawn.clear();
}

/** The sinks with the largest backlog, in the order of the config. */
function busiest(sinks) {
  const names = Object.keys(sinks);
  if (names.length <= linesMax) return names;
  const chosen = names.toSorted((a, b) => sinks[b].backlog - sinks[a].backlog).slice(0, linesMax);
  return names.filter((name) => chosen.includes(name));
}

function dataOf(samples, lines, stepMs) {
  const columns = [[], ...lines.map(() => [])];
  let before = samples[0].at;
  for (const sample of samples) {
    if (sample.at - before > stepMs * stepsMissedMax) {
      columns[0].push((before + stepMs) / 1000);
      for (const column of columns.slice(1)) column.push(null);
    }
    before = sample.at;
    columns[0].push(sample.at / 1000);
    for (const [index, [, read]] of lines.entries()) columns[index + 1].push(read(sample));
  }
  return columns;
}

function open(parent, title, reading, lines) {
  const legend = make('figcaption', { 'aria-live': 'off' });
  const plotBox = make('div', { class: 'plot' });
  const figure = make(
    'figure',
    { class: 'chart card', tabindex: 0, role: 'group' },
    legend,
    plotBox,
  );
  parent.append(figure);
  const plot = new uPlot(optionsFor(plotBox, reading, lines), null, plotBox);
  const showLegend = () => fill(legend, ...legendParts(title, reading, lines, plot));
  plot.hooks.setCursor = [showLegend];
  const room = new ResizeObserver(() => plot.setSize(sizeOf(plotBox)));
  room.observe(plotBox);
  figure.addEventListener('keydown', (event) => moveCursor(event, plot));
  return {
    show(data) {
      plot.setData(data);
      showLegend();
      const now = lines.map(
        ([name], index) => `${name} ${reading.unit(data[index + 1].at(-1) ?? 0)}`,
      );
      figure.setAttribute('aria-label', `${title} in the last hour; now: ${now.join(', ')}`);
    },
    remove() {
      room.disconnect();
      plot.destroy();
      figure.remove();
    },
  };
}

function sizeOf(plotBox) {
  return { width: plotBox.clientWidth, height: plotBox.clientHeight };
}

/** A step to the left or right; the other charts follow. */
function moveCursor(event, plot) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const last = plot.data[0].length - 1;
  const index = Math.min(last, Math.max(0, (plot.cursor.idx ?? last) + step));
  const left = plot.valToPos(plot.data[0][index], 'x');
  plot.setCursor({ left, top: 0 }, true, true);
}

function legendParts(title, { unit }, lines, plot) {
  const { idx } = plot.cursor;
  const last = (plot.data?.[0]?.length ?? 0) - 1;
  const at = idx ?? last;
  const when = idx === null || idx === undefined ? 'now' : clock(plot.data[0][idx] * 1000, true);
  const values = lines.map(([name], index) => {
    const value = plot.data?.[index + 1]?.[at];
    return make(
      'span',
      { class: `value line-${index + 1}` },
      lines.length === 1 ? null : make('span', { class: 'quiet' }, name),
      make('strong', {}, value === null || value === undefined ? '–' : unit(value)),
    );
  });
  return [
    make('span', { class: 'title' }, title),
    make('span', { class: 'quiet when' }, when),
    make('span', { class: 'values' }, ...values),
  ];
}

function optionsFor(plotBox, { tick, incrs }, lines) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: colour('quiet'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    ...sizeOf(plotBox),
    padding: [8, 25, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: { key: 'hour' },
      points: { size: 7, width: 0, fill: (_plot, index) => colour(`line-${index}`) },
    },
    scales: {
      x: { time: true, range: (_plot, min, max) => [max - spanOf(max - min), max] },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 22,
        gap: 4,
        space: 56,
        values: (_plot, ats, _axis, _space, step) => ats.map((at) => clock(at * 1000, step < 60)),
      },
      {
        ...axis,
        ...{ size: 54, gap: 4, space: 28, values: (_plot, values) => values.map(tick) },
        ...(incrs === undefined ? {} : { incrs }),
      },
    ],
    series: [
      {},
      ...lines.map((_, index) => ({
        stroke: colour(`line-${index + 1}`),
        width: 1.5,
        points: { show: false },
        ...(lines.length === 1 ? { fill: colour('area') } : {}),
      })),
    ],
  };
}

/** Seconds that the time axis spans. */
function spanOf(seconds) {
  return (spansMin.find((min) => seconds <= min * 60) ?? 60) * 60;
}
