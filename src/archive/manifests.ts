// Manifests of completeness: the totals of a stream's day (days.ts), as an object that is readable without the log. A
// manifest is a view: the same bytes can be rebuilt from the entries, and an entry names it. Invariants: a manifest is
// written before the checkpoint over its entry; no two manifests have one name.

import { hash } from 'node:crypto';
import { timeText } from '../tools/index.ts';
import type { OverDay } from './days.ts';
import type { ArchiveLog, NewObject } from './log.ts';

/** Bytes of a day's manifest. */
export function encodeDay(over: OverDay): Buffer {
  const { stream, day, source, seq, pages, records, kept, asked, next, size } = over;
  const conditions = Object.fromEntries(
    Object.entries(over.conditions).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  const { tails, last_tail } = over;
  const { times, dropped, missing, changed } = over.compared;
  const manifest = {
    ...{ stream, day, source, seq, pages, records, kept, asked, next, tails, last_tail },
    ...{ conditions, compared: { times, dropped, missing, changed }, size },
  };
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
}

/** Limit of characters from the stream's name, which may contain upstream text. */
const streamTextMax = 200;

/** Name of a day's manifest; unique. */
export function dayPath({ stream, day }: { readonly stream: string; readonly day: string }) {
  const parts = stream.split('/').map((part) => {
    const text = encodeURIComponent(part.toWellFormed()).replace(/^\./, '%2E');
    return text === '' ? '%' : text;
  });
  const text = parts.join('/');
  const name = text.length > streamTextMax ? `%${hash('sha256', stream, 'hex')}` : text;
  return `manifests/${name}/${day}.json`;
}

/** Limit of manifests per checkpoint; at midnight all streams have one. */
const manifestsMax = 256;

/** Enters ended days, and returns their manifests, which are written with the entries. */
export function enterDays(log: ArchiveLog, now: number): readonly NewObject[] {
  return log.heads.days.over.slice(0, manifestsMax).map((over) => {
    const bytes = encodeDay(over);
    const { stream, day } = over;
    const object = dayPath(over);
    log.append({
      ...{ t: 'manifest', at: timeText(now), stream, day, object },
      ...{ bytes: bytes.length, sha256: hash('sha256', bytes, 'hex') },
    });
    return { name: object, parts: [bytes] };
  });
}
