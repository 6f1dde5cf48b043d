// The last hour as small charts, each a line and its area in SVG, with the latest and the largest value in words. A process
// that has just started has little to show, so the time axis grows with it up to the hour.

import { fill, make, number, rate, size } from './dom.js';

const width = 320;
const height = 84;
const spansMin = [5, 15, 30, 60];

/** Draws all charts. */
export function drawCharts(parent, samples) {
  if (samples.length < 2) {
    fill(parent, make('p', { class: 'quiet' }, 'The first points appear in a few seconds.'));
    return;
  }
  const sinks = Object.keys(samples.at(-1)?.sinks ?? {});
  const charts = [
    chart('Records read', samples, (sample) => sample.read, rate),
    chart('Spool', samples, (sample) => sample.spool_bytes, size),
    ...sinks.flatMap((name) => [
      chart(`Sent to ${name}`, samples, (sample) => sample.sinks[name]?.rate ?? 0, rate),
      chart(`Backlog of ${name}`, samples, (sample) => sample.sinks[name]?.backlog ?? 0, number),
    ]),
  ];
  fill(parent, ...charts);
}

function chart(title, samples, read, unit) {
  const values = samples.map(read);
  const spanMin = spanOf(samples);
  const most = Math.max(...values, 0);
  const latest = values.at(-1) ?? 0;
  const end = samples.at(-1)?.at ?? 0;
  const x = (at) => (width * (1 - (end - at) / (spanMin * 60_000))).toFixed(1);
  const y = (value) => (height - 3 - (most === 0 ? 0 : (value / most) * (height - 8))).toFixed(1);
  const points = samples.map((sample, index) => `${x(sample.at)},${y(values[index])}`);
  const begin = x(samples[0]?.at ?? end);
  return make(
    'figure',
    { class: 'chart' },
    make(
      'figcaption',
      {},
      make('span', {}, title),
      make('strong', {}, unit(latest)),
      make('span', { class: 'quiet' }, `most ${unit(most)}`),
    ),
    make(
      'svg:svg',
      {
        viewBox: `0 0 ${width} ${height}`,
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': `${title}: now ${unit(latest)}, at most ${unit(most)} in the last ${spanMin} minutes`,
      },
      ...[0.25, 0.5, 0.75].map((part) =>
        make('svg:line', {
          class: 'grid',
          x1: width * part,
          x2: width * part,
          y1: 0,
          y2: height,
        }),
      ),
      make('svg:path', {
        class: 'area',
        d: `M${begin},${height} L${points.join(' L')} L${width},${height} Z`,
      }),
      make('svg:polyline', { class: 'line', points: points.join(' ') }),
    ),
    make(
      'p',
      { class: 'axis quiet' },
      make('span', {}, `${spanMin} min ago`),
      make('span', {}, 'now'),
    ),
  );
}

function spanOf(samples) {
  const ms = (samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0);
  return spansMin.find((min) => ms <= min * 60_000) ?? 60;
}
