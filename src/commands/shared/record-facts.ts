// Checks a source's `id`, `time` and `mapping.fields` against the fields of a record that was just read. A field may be
// optional, so one record proves little: a path is a fault only if the record must have it, or has a field of a similar
// name. Invariant: field names are shown, which are upstream's and hostile, and never a value.

import type { RecordReading } from '../../contracts/config.ts';
import { ExportError, isObject, type Json, type ParsedRecord } from '../../contracts/index.ts';
import { cleanText, nearest, valueAt } from '../../tools/index.ts';

/** The result of the check for a source's settings. */
export interface SettingFacts {
  /** Settings that name no field; empty: none does. */
  readonly faults: readonly ExportError[];
  /** Faults that may not apply to other records. */
  readonly notes: readonly string[];
}

const namedMax = 12;
const lengthMax = 300;

/** Compares a source's settings with one of its records. */
export function factsOfRecord(
  source: string,
  { id, time, mapping }: RecordReading,
  record: ParsedRecord,
): SettingFacts {
  const faults: ExportError[] = [];
  const notes: string[] = [];
  const fault = (key: string, what: string, next: string) => {
    const message = `sources.${source}.${key}: ${what}; the record has ${namesIn(record)}`;
    faults.push(new ExportError('config_invalid', message, { next }));
  };
  if (id !== null && !has(record, id)) {
    const what = `the record just read has no field ${id}${meant(id, record)}`;
    fault('id', what, 'Name the field with the record’s id, or set id: null where there is none.');
  }
  if (time.length > 0 && !time.some((path) => has(record, path))) {
    const what = `the record just read has no field ${time.join(' or ')}${meantOf(time, record)}`;
    // Several names, such as the default, may be right for other records.
    if (time.length === 1 || meantOf(time, record) !== '') {
      fault('time', what, 'Name the field with the record’s time.');
    } else notes.push(`sources.${source}.time: ${what}; such events have the time of reading`);
  }
  const fields = Object.entries(mapping?.fields ?? {}).map(([to, from]) => ({
    to,
    from: [from].flat(),
  }));
  const missing = fields.filter(({ from }) => !from.some((path) => has(record, path)));
  const misspelt = missing.filter(({ from }) => meantOf(from, record) !== '');
  const named = (some: typeof fields) =>
    some
      .slice(0, namedMax)
      .map(({ to, from }) => `${to}: ${from.join(' or ')}${meantOf(from, record)}`)
      .join(', ');
  const isAll = fields.length > 0 && missing.length === fields.length;
  if (misspelt.length > 0 || isAll) {
    const what = `the record just read has no field for ${named(isAll ? missing : misspelt)}`;
    fault('mapping.fields', what, 'Name fields of the record; the others stay in unmapped.');
  }
  if (misspelt.length === 0 && !isAll && missing.length > 0) {
    notes.push(
      `sources.${source}.mapping.fields: the record just read has no field for ${named(missing)}; it may be optional`,
    );
  }
  return { faults, notes };
}

function has(record: Json, path: string): boolean {
  return valueAt(record, path) !== undefined;
}

function meantOf(paths: readonly string[], record: Json): string {
  return paths.map((path) => meant(path, record)).find((said) => said !== '') ?? '';
}

/** ` (did you mean NAME?)` where the record has a field of nearly that name. */
function meant(path: string, record: Json): string {
  const dot = path.lastIndexOf('.');
  const parent = dot < 0 ? record : valueAt(record, path.slice(0, dot));
  if (!isObject(parent)) return '';
  const near = nearest(path.slice(dot + 1), Object.keys(parent));
  if (near === null) return '';
  return ` (did you mean ${cleanText(`${path.slice(0, dot + 1)}${near}`, lengthMax)}?)`;
}

function namesIn(record: Json): string {
  const names = isObject(record) ? Object.keys(record) : [];
  const more = names.length > namedMax ? ', …' : '';
  return cleanText(names.slice(0, namedMax).join(', ') + more, lengthMax) || 'no field';
}
