// `npx node bench/chart.ts`: draws what `bench/results/` holds as charts for docs/performance.md and the README, into
// `docs/assets/`. Bars with their figures beside them, in plain SVG; colours follow the reader's light or dark scheme,
// and a title and a description say in words what the bars show.

import { mkdirSync, writeFileSync } from 'node:fs';
import type { Growth } from './growth.ts';
import { type Circumstances, readResults } from './results.ts';

interface Bar {
  readonly label: string;
  readonly value: number;
  /** Drawn in the accent colour. */
  readonly own: boolean;
}

/** Bars under a heading, on one scale with other groups of their unit. */
interface Group {
  readonly heading: string;
  readonly unit: string;
  /** Behind the point. */
  readonly digits: number;
  readonly bars: readonly Bar[];
}

type Row = Readonly<Record<string, string | number>>;

const width = 720;
const labelEnd = 190;
const barsEnd = width - 60;
const barHeight = 18;
const barStep = 26;
const headingStep = 34;
const top = 58;

const here = (path: string) => new URL(path, import.meta.url).pathname;

function inXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const style = `
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .heading { font-weight: 600 }
  .note { font-size: 11px; fill: #59636e }
  .own { fill: #0969da }
  .other { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .own { fill: #4493f8 }
    .other { fill: #656c76 }
  }`;

const shown = (value: number, digits: number) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** A chart of bars as SVG. */
function draw(title: string, note: string, groups: readonly Group[]): string {
  const most = new Map(
    [...Map.groupBy(groups, ({ unit }) => unit)].map(([unit, same]) => [
      unit,
      Math.max(...same.flatMap(({ bars }) => bars.map(({ value }) => value))),
    ]),
  );
  const lines: string[] = [];
  let y = top;
  for (const { heading, unit, digits, bars } of groups) {
    lines.push(`<text class="heading" x="16" y="${y}">${inXml(heading)}</text>`);
    y += 12;
    for (const { label, value, own } of bars) {
      const length = Math.max(
        1,
        Math.round(((barsEnd - labelEnd) * value) / (most.get(unit) ?? 1)),
      );
      const baseline = y + barHeight - 5;
      lines.push(
        `<text x="${labelEnd - 10}" y="${baseline}" text-anchor="end">${inXml(label)}</text>`,
        `<rect class="${own ? 'own' : 'other'}" x="${labelEnd}" y="${y}" width="${length}" height="${barHeight}" rx="2"/>`,
        `<text x="${labelEnd + length + 8}" y="${baseline}">${shown(value, digits)}</text>`,
      );
      y += barStep;
    }
    y += headingStep - 12;
  }
  const inWords = groups.map(
    ({ heading, bars, digits }) =>
      `${heading}: ${bars.map(({ label, value }) => `${label} ${shown(value, digits)}`).join(', ')}.`,
  );
  const height = y + 2;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title desc">
<title id="title">${inXml(title)}</title>
<desc id="desc">${inXml(inWords.join(' '))}</desc>
<style>${style}
</style>
<text class="title" x="16" y="26">${inXml(title)}</text>
${lines.join('\n')}
<text class="note" x="16" y="${height - 12}">${inXml(note)}</text>
</svg>
`;
}

function reported({ date, cores, node, rounds = 1 }: Circumstances, work = ''): string {
  const how = rounds === 1 ? 'one run' : `medians of ${rounds} runs`;
  return `Less is better. ${work}${how}, ${cores} shared cores, Node ${node}, ${date}.`;
}

const withEvents = (measured: Circumstances) =>
  reported(measured, `${measured.events.toLocaleString('en')} events, `);

function write(name: string, svg: string): void {
  mkdirSync(here('../docs/assets'), { recursive: true });
  writeFileSync(here(`../docs/assets/${name}.svg`), svg);
}

const cpu = { unit: 'us', digits: 1 };

const jobs = readResults<{ rows: readonly Row[] }>(here('./results/jobs.json'));
if (jobs !== null) {
  const groups = jobs.rows.map((row) => ({
    heading: String(row.job),
    ...cpu,
    bars: [
      { label: 'sluice', value: Number(row['CPU us/event']), own: true },
      { label: 'floor', value: Number(row['floor us/event']), own: false },
    ],
  }));
  write(
    'jobs',
    draw('CPU microseconds an event, and the floor under it', withEvents(jobs), groups),
  );
}

const peers = readResults<{ rows: readonly Row[] }>(here('./results/peers.json'));
if (peers !== null) {
  const groups = [...Map.groupBy(peers.rows, (row) => String(row.job))].map(([heading, rows]) => ({
    heading,
    ...cpu,
    bars: rows
      .map((row) => ({
        label: String(row.program),
        value: Number(row['CPU us/event']),
        own: row.program === 'sluice',
      }))
      .toSorted((a, b) => a.value - b.value),
  }));
  write(
    'peers',
    draw('CPU microseconds an event, from source to receiver', withEvents(peers), groups),
  );
}

const grown = readResults<{ growth: readonly Growth[] }>(here('./results/growth.json'));
for (const { by, of, unit, points } of grown?.growth ?? []) {
  const bars = (value: (point: Growth['points'][number]) => number, own: boolean) =>
    points.map((point) => ({ label: shown(point.at, 0), value: value(point), own }));
  const groups = [
    { heading: unit, unit, digits: 1, bars: bars((point) => point.cpu, true) },
    {
      ...{ heading: 'Memory at most, MB (RSS)', unit: 'MB', digits: 0 },
      bars: bars((point) => point.rssMb, false),
    },
  ];
  write(`growth-${by}`, draw(`By ${of}`, reported(grown as Circumstances), groups));
}
