// A verification as one self-contained page: the report with a timeline of completeness per stream. Invariant: all
// content comes from an archive that may be forged, so all text is escaped, and the page runs no script and loads
// nothing.

import type { Break, Report, StreamDay, VerifiedStream } from '../../archive/audit.ts';
import { visibleText } from '../../contracts/index.ts';
import { reportVerdict } from './report-json.ts';
import {
  bounded,
  comparedText,
  configInForce,
  erasureText,
  factTexts,
  gapTexts,
  groupedBreaks,
  groupText,
  placeText,
  successionText,
  verdictText,
} from './report-lines.ts';

const dayMs = 24 * 60 * 60 * 1_000;
/** Wider timelines have several days in a cell. */
const cellsMax = 120;
/** Fewer streams than this are not worth a fold. */
const restMin = 20;

const style = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a }
h1 { font-size: 1.3rem; padding: .6rem .8rem; border-radius: .3rem; color: #fff }
h2 { font-size: 1rem; margin-top: 2rem }
.whole { background: #1b7f3b } .broken { background: #b3261e } .open_gaps { background: #9a6700 }
li, b, summary { overflow-wrap: anywhere }
summary { cursor: pointer }
.days { display: flex; gap: 1px; margin: .1rem 0 .8rem }
.days i { flex: 1; height: 1.4rem; min-width: 2px; background: #e4e4e4 }
.days .read, .read { background: #4caf6d } .days .gap, .gap { background: #e0a100 } .days .break, .break { background: #d33a2f }
.key i { display: inline-block; width: 1rem; height: .8rem; margin: 0 .3rem 0 1rem } .none { background: #e4e4e4 }
small { color: #555 }
`;

/** The page. */
export function reportHtml(report: Report): string {
  const { breaks, gaps, erasures, compared, configs, successions, streams, remarks } = report;
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    `<title>${escaped(report.origin)}: ${escaped(verdictText(report))}</title><style>${style}</style></head><body>`,
    `<h1 class="${reportVerdict(report)}">${escaped(verdictText(report))}</h1>`,
    list('', factTexts(report)),
    breaks.length === 0 ? '' : breakList(report),
    list('Gaps that sluice reported', gapTexts(gaps)),
    list('Records that were erased', bounded(erasures, erasureText)),
    list('Compared with upstream', bounded(compared, comparedText)),
    list('Configs that were in force', bounded(configs, configInForce)),
    list('Successions', bounded(successions, successionText)),
    streams.length === 0 ? '' : `<h2>Streams, by the day of reading</h2>${key}`,
    ...inTwoParts(streams, timelines(streams)),
    list('Notes', remarks),
    '</body></html>\n',
  ].join('\n');
}

const key =
  '<p class="key"><i class="read"></i>read<i class="gap"></i>gap reported<i class="break"></i>broken<i class="none"></i>nothing read</p>';

function list(title: string, items: readonly string[]): string {
  if (items.length === 0) return '';
  const head = title === '' ? '' : `<h2>${escaped(title)}</h2>`;
  return `${head}<ul>${items.map((item) => `<li>${escaped(item)}</li>`).join('')}</ul>`;
}

/** Breaks that are the same for many pages fold up. */
function breakList({ breaks, breaksOmitted }: Report): string {
  const items = groupedBreaks(breaks).map((group) => {
    const text = escaped(groupText(group));
    return group.length === 1
      ? `<li>${text}</li>`
      : `<li>${folded(text, group.map(placeItem))}</li>`;
  });
  const omitted = breaksOmitted === 0 ? '' : `<li>and ${breaksOmitted} more</li>`;
  return `<h2>Breaks</h2><ul>${items.join('')}${omitted}</ul>`;
}

function placeItem(one: Break): string {
  return `<li>${escaped(placeText(one))}</li>`;
}

function folded(summary: string, items: readonly string[]): string {
  return `<details><summary>${summary}</summary><ul>${items.join('')}</ul></details>`;
}

/** Streams that need attention come first; many others fold up after them. */
function inTwoParts(
  streams: readonly VerifiedStream[],
  shown: readonly string[],
): readonly string[] {
  const isMarked = streams.map(({ days }) =>
    [...days.values()].some(({ gaps, breaks }) => gaps + breaks > 0),
  );
  const first = shown.filter((_, i) => isMarked[i]);
  const rest = shown.filter((_, i) => !isMarked[i]);
  if (first.length === 0 || rest.length < restMin) return [...first, ...rest];
  const what = `${rest.length} more streams without a gap or a break`;
  return [...first, `<details><summary>${what}</summary>${rest.join('\n')}</details>`];
}

function timelines(streams: readonly VerifiedStream[]): readonly string[] {
  const days = streams.flatMap((stream) => [...stream.days.keys()].map((day) => Date.parse(day)));
  const first = days.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const last = days.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const daysInCell = Math.ceil(((last - first) / dayMs + 1) / cellsMax);
  const count = Math.ceil(((last - first) / dayMs + 1) / daysInCell);
  return streams.map((stream) => {
    const sums = Array.from({ length: count }, nothing);
    for (const [day, found] of stream.days) {
      const sum = sums[Math.floor((Date.parse(day) - first) / dayMs / daysInCell)] ?? nothing();
      sum.pages += found.pages;
      sum.records += found.records;
      sum.gaps += found.gaps;
      sum.breaks += found.breaks;
    }
    const cells = sums.map((sum, i) => cell(sum, first + i * daysInCell * dayMs, daysInCell));
    const { stream: name, pages, records, first: from, last: to } = stream;
    const about = `${pages} pages, ${records} records, ${from} to ${to}`;
    return `<div><b>${escaped(name)}</b> <small>${escaped(about)}</small><div class="days">${cells.join('')}</div></div>`;
  });
}

function nothing(): StreamDay {
  return { pages: 0, records: 0, gaps: 0, breaks: 0 };
}

/** One cell: the days from `at` on, judged by the worst of them. */
function cell({ pages, records, gaps, breaks }: StreamDay, at: number, count: number): string {
  const state = breaks > 0 ? 'break' : gaps > 0 ? 'gap' : pages > 0 ? 'read' : 'none';
  const span = count === 1 ? dayName(at) : `${dayName(at)} to ${dayName(at + (count - 1) * dayMs)}`;
  const title = `${span}: ${pages} pages, ${records} records, ${gaps} gaps, ${breaks} breaks`;
  return `<i class="${state}" title="${title}"></i>`;
}

function dayName(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function escaped(text: string): string {
  return visibleText(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
