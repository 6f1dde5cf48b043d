// `npx node bench/chart.ts`: puts what `bench/results/` holds into the tables of
// docs/performance.md, and draws it as charts for them and the README, into `docs/assets/`. Bars
// with their figures beside them, in plain SVG; colours follow the reader's light or dark scheme,
// and a title and a description say in words what the bars show.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type Circumstances, readResults } from './results.ts';

interface Bar {
  readonly label: string;
  /** CPU microseconds per event. */
  readonly us: number;
  /** Drawn in the accent colour. */
  readonly own: boolean;
}

/** Bars under a heading, the least first. */
interface Group {
  readonly heading: string;
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

/** A chart of bars as SVG. */
function draw(title: string, note: string, groups: readonly Group[]): string {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ us }) => us)));
  const lines: string[] = [];
  let y = top;
  for (const { heading, bars } of groups) {
    lines.push(`<text class="heading" x="16" y="${y}">${inXml(heading)}</text>`);
    y += 12;
    for (const { label, us, own } of bars) {
      const length = Math.max(1, Math.round(((barsEnd - labelEnd) * us) / most));
      const baseline = y + barHeight - 5;
      lines.push(
        `<text x="${labelEnd - 10}" y="${baseline}" text-anchor="end">${inXml(label)}</text>`,
        `<rect class="${own ? 'own' : 'other'}" x="${labelEnd}" y="${y}" width="${length}" height="${barHeight}" rx="2"/>`,
        `<text x="${labelEnd + length + 8}" y="${baseline}">${us.toFixed(1)}</text>`,
      );
      y += barStep;
    }
    y += headingStep - 12;
  }
  const inWords = groups.map(
    ({ heading, bars }) =>
      `${heading}: ${bars.map(({ label, us }) => `${label} ${us.toFixed(1)}`).join(', ')}.`,
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

const told = ({ date, cores, node, events }: Circumstances) =>
  `Less is better. ${events.toLocaleString('en')} events of about 700 bytes, ${cores} shared cores, Node ${node}, ${date}.`;

function write(name: string, svg: string): void {
  mkdirSync(here('../docs/assets'), { recursive: true });
  writeFileSync(here(`../docs/assets/${name}.svg`), svg);
}

const page = here('../docs/performance.md');

/** Replaces the rows below the line that begins a table. */
function fill(header: string, rows: readonly (readonly (string | number)[])[]): void {
  const text = readFileSync(page, 'utf8');
  const begin = text.indexOf(`${header}\n|---|`);
  if (begin < 0) throw new Error(`docs/performance.md has no table ${header}`);
  const from = text.indexOf('\n', begin + header.length + 1) + 1;
  const after = text.indexOf('\n\n', from) + 1;
  const lines = rows.map((row) => `| ${row.join(' | ')} |\n`).join('');
  writeFileSync(page, text.slice(0, from) + lines + text.slice(after));
}

const thousands = (n: number) => (Math.round(n / 1_000) * 1_000).toLocaleString('en');

const jobs = readResults<{ rows: readonly Row[] }>(here('./results/jobs.json'));
if (jobs !== null) {
  const groups = jobs.rows.map((row) => ({
    heading: String(row.job),
    bars: [
      { label: 'sluice', us: Number(row['CPU us/event']), own: true },
      { label: 'floor', us: Number(row['floor us/event']), own: false },
    ],
  }));
  fill(
    '| job | CPU µs an event | floor | times | events a CPU second | RSS at most | loop delay p99 |',
    jobs.rows.map((row) => [
      String(row.job),
      Number(row['CPU us/event']).toFixed(1),
      Number(row['floor us/event']).toFixed(1),
      Number(row['times the floor']).toFixed(1),
      thousands(Number(row['events/CPU-second'])),
      `${row['RSS peak MB']} MB`,
      `${Math.round(Number(row['loop delay p99 ms']))} ms`,
    ]),
  );
  write('jobs', draw('CPU microseconds an event, and the floor under it', told(jobs), groups));
}

const peers = readResults<{ rows: readonly Row[] }>(here('./results/peers.json'));
if (peers !== null) {
  const groups = [...Map.groupBy(peers.rows, (row) => String(row.job))].map(([heading, rows]) => ({
    heading,
    bars: rows
      .map((row) => ({
        label: String(row.program),
        us: Number(row['CPU us/event']),
        own: row.program === 'sluice',
      }))
      .toSorted((a, b) => a.us - b.us),
  }));
  fill(
    '| job | program | CPU µs an event | times sluice |',
    peers.rows.map((row) => [
      String(row.job),
      String(row.program),
      Number(row['CPU us/event']).toFixed(1),
      row.program === 'sluice' ? '1' : Number(row['times sluice']).toFixed(2),
    ]),
  );
  write('peers', draw('CPU microseconds an event, from source to receiver', told(peers), groups));
}
