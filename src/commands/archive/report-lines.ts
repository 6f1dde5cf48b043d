// A verification as text for a terminal: the verdict, then every break with its location, the gaps, the contents of
// each stream, and notes for an auditor.

import type {
  Break,
  Compared,
  ConfigChange,
  Erasure,
  Report,
  ReportedGap,
  SuccessionSeen,
  WitnessedSize,
} from '../../archive/audit.ts';
import { counted, painted, sizeText, tableLines } from '../../terminal/index.ts';
import { cleanText, timeText } from '../../tools/index.ts';
import { reportVerdict } from './report-json.ts';

const lengthMax = 500;
/** The most lines shown of a list that may have thousands. */
const listMax = 200;

/** The report in lines. */
export function reportLines(report: Report): readonly string[] {
  const {
    breaks,
    breaksOmitted,
    gaps,
    erasures,
    compared,
    configs,
    successions,
    streams,
    remarks,
  } = report;
  return [
    painted(verdictText(report), reportVerdict(report) === 'whole' ? 'good' : 'bad'),
    ...factTexts(report).map((text) => `  ${cleanText(text, lengthMax)}`),
    ...heading('breaks', breaks),
    ...groupedBreaks(breaks).map((group) => `  ${cleanText(groupText(group), lengthMax)}`),
    ...(breaksOmitted === 0 ? [] : [`  and ${breaksOmitted} more`]),
    ...heading('gaps that sluice reported', gaps),
    ...gapTexts(gaps).map((text) => `  ${cleanText(text, lengthMax)}`),
    ...heading('records that were erased', erasures),
    ...bounded(erasures, erasureText).map((text) => `  ${cleanText(text, lengthMax)}`),
    ...heading('compared with upstream', compared),
    ...bounded(compared, comparedText).map((text) => `  ${cleanText(text, lengthMax)}`),
    ...heading('configs that were in force', configs),
    ...bounded(configs, configInForce).map((text) => `  ${text}`),
    ...heading('successions', successions),
    ...bounded(successions, successionText).map((text) => `  ${cleanText(text, lengthMax)}`),
    ...heading('streams', streams),
    ...streamLines(report).map((line) => `  ${line}`),
    ...heading('notes', remarks),
    ...remarks.map((remark) => `  ${cleanText(remark, lengthMax)}`),
  ];
}

/** The newest of a list as text, and the count of older ones; `--json` has all. */
export function bounded<T>(list: readonly T[], text: (one: T) => string): readonly string[] {
  const earlier = list.length - listMax;
  return [
    ...(earlier > 0 ? [`${earlier} others, which --json has as well`] : []),
    ...list.slice(-listMax).map(text),
  ];
}

/** The verdict in a sentence. */
export function verdictText(report: Report): string {
  const { breaks, breaksOmitted, gaps } = report;
  switch (reportVerdict(report)) {
    case 'whole':
      return 'whole: nothing is missing, altered or out of order';
    case 'broken':
      return `BROKEN: ${counted(breaks.length + breaksOmitted, 'break')}`;
    case 'open_gaps':
      return `whole, with ${counted(gaps.filter(({ isOpen }) => isOpen).length, 'open gap')} that sluice reported`;
  }
}

/** The proven facts: which archive, under which key. */
export function factTexts(report: Report): readonly string[] {
  const { place, origin, size, root, signedBy, pages, records, streams, bodyBytes } = report;
  const keys = signedBy.map(({ vkey }) => vkey).join(', ');
  return [
    `archive ${origin} in ${place}`,
    `log of ${size} entries, root ${root}`,
    keys === '' ? 'signed by no key of the log' : `signed by ${keys}`,
    `${counted(pages, 'page')} with ${counted(records, 'record')} of ${counted(streams.length, 'stream')} read again, ${sizeText(bodyBytes)}`,
    `${counted(report.checkpoints, 'older checkpoint')} found to be of the same tree`,
    ...seenTexts(report),
  ];
}

function seenTexts({ stamps, stamp, cosigned, cosignature }: Report): readonly string[] {
  const text = (
    { size, at, by, until = Number.POSITIVE_INFINITY }: WitnessedSize,
    kind: string,
  ) => {
    const ended = until < Date.now() ? ' (one of its certificates has expired since)' : '';
    return `its first ${size} entries existed at ${timeText(at)}, as ${by.join(', ')} says${ended}; ${kind} in all`;
  };
  return [
    ...(stamp === null ? [] : [text(stamp, counted(stamps, 'time stamp'))]),
    ...(cosignature === null ? [] : [text(cosignature, counted(cosigned, 'cosigned checkpoint'))]),
  ];
}

/** Breaks of one object with the same cause, as one group: thousands of pages may have it. */
export function groupedBreaks(breaks: readonly Break[]): readonly (readonly Break[])[] {
  const groups: Break[][] = [];
  for (const one of breaks) {
    const group = groups.at(-1);
    const like = group?.[0];
    const isLike = one.object !== null && one.object === like?.object && one.what === like.what;
    if (isLike) group?.push(one);
    else groups.push([one]);
  }
  return groups;
}

/** Location and cause of a group of breaks. */
export function groupText(group: readonly Break[]): string {
  const [first, last] = [group[0], group.at(-1)];
  if (first === undefined || last === undefined) return '';
  if (group.length === 1) return `${placeText(first)}: ${first.what}`;
  const streams = counted(new Set(group.map(({ stream }) => stream)).size, 'stream');
  const entries = `entries ${first.index} to ${last.through ?? last.index}`;
  return `${entries} (${group.length} breaks in ${streams}), ${first.object}: ${first.what}`;
}

/** Where a break is. */
export function placeText({ index, through, stream, seq, object }: Break): string {
  const last = through === undefined || through === index ? '' : ` to ${through}`;
  return [
    ...(index === null ? [] : [`entry ${index}${last}`]),
    ...(stream === null ? [] : [`${stream} ${seq}`]),
    ...(object === null ? [] : [object]),
  ].join(', ');
}

/** Gaps as text; if there are very many, open ones first. */
export function gapTexts(gaps: readonly ReportedGap[]): readonly string[] {
  const isTooMany = gaps.length > listMax;
  const shown = isTooMany ? gaps.toSorted((a, b) => Number(a.isOpen) - Number(b.isOpen)) : gaps;
  return bounded(shown, gapText);
}

/** A gap as text, and whether it has ended. */
function gapText({ index, stream, seq, at, what, isOpen }: ReportedGap): string {
  return `${at}, ${stream} ${seq}, entry ${index}: ${what}${isOpen ? '' : ' (it has ended)'}`;
}

/** The erased records, and the reason. */
export function erasureText({ index, at, page, records, reason }: Erasure): string {
  const which = records.length === 1 ? `SHA-256 ${records[0]}` : `SHA-256 ${records[0]}, …`;
  return `${at}, entry ${index}: ${counted(records.length, 'record')} of the page of entry ${page} (${which}): ${reason}`;
}

/** The result of a comparison with upstream. */
export function comparedText(one: Compared): string {
  const { at, stream, from, to, upstream, archived, dropped, missing, changed } = one;
  const found =
    dropped + missing + changed === 0
      ? 'no difference'
      : `upstream has dropped ${dropped}, shows ${changed} changed, and ${missing} never came`;
  return `${at}, ${stream}, records of ${from} to ${to}: ${found} (upstream ${upstream}, archive ${archived})`;
}

/** Which config was in force, and from when on. */
export function configInForce({ index, at, sha256 }: ConfigChange): string {
  return `from ${at}, entry ${index}: ${sha256}`;
}

/** Which source delivers from an entry on, and where its streams are then. */
export function successionText({
  index,
  at,
  phase,
  predecessor,
  successor,
  streams,
}: SuccessionSeen): string {
  const [delivers, other] =
    phase === 'cut_over' ? [successor, predecessor] : [predecessor, successor];
  const places = streams.map(({ stream, seq }) =>
    seq === null ? `${stream} has no page yet` : `${stream} is at page ${seq}`,
  );
  return `from ${at}, entry ${index}: ${delivers} delivers instead of ${other}; ${places.join(', ')}`;
}

function heading(text: string, list: readonly unknown[]): readonly string[] {
  return list.length === 0 ? [] : ['', text];
}

function streamLines({ streams }: Report): readonly string[] {
  if (streams.length === 0) return [];
  return tableLines(
    ['STREAM', 'PAGES', 'RECORDS', 'FIRST READ', 'LAST READ'],
    streams.map(({ stream, pages, records, first, last }) => [
      ...[stream, String(pages), String(records), first, last],
    ]),
  );
}
