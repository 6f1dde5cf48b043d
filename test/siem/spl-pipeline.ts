// Searches of Splunk with their commands, for tests: eval, where, sort by time, streamstats in a window of time, stats, dedup
// and table, as far as our searches use them. Anything else is an error.

import { evalOf, type Fields } from './spl-eval.ts';
import { searchOf } from './spl-search.ts';

type Results = readonly Fields[];

/** The results of a search over events, each with its fields and `_time` in seconds. */
export function runSpl(search: string, events: Results): Results {
  const [first = '', ...commands] = piecesOf(search);
  return commands.reduce(commanded, events.filter(searchOf(first)));
}

/** The parts between pipes; a pipe in a text is no border. */
function piecesOf(search: string): readonly string[] {
  return (search.match(/(?:"(?:[^"\\]|\\.)*"|[^|"])+/g) ?? []).map((piece) => piece.trim());
}

function commanded(results: Results, command: string): Results {
  const [, name = '', rest = ''] = /^(\w+)\s*(.*)$/s.exec(command) ?? [];
  switch (name) {
    case 'eval': {
      const [, field = '', text = ''] = /^(\w+)\s*=\s*(.*)$/s.exec(rest) ?? [];
      const compute = evalOf(text);
      return results.map((fields) => withValue(fields, field, compute(fields)));
    }
    case 'where': {
      const test = evalOf(rest);
      return results.filter((fields) => test(fields) === true);
    }
    case 'sort':
      if (rest !== '0 _time') throw new Error(`sort ${rest} is not known here`);
      return results.toSorted((a, b) => timeOf(a) - timeOf(b));
    case 'dedup': {
      const seen = new Set<string>();
      return results.filter((fields) => {
        const value = fields.get(rest)?.join('\n');
        if (value === undefined || seen.has(value)) return false;
        seen.add(value);
        return true;
      });
    }
    case 'table':
      return results;
    case 'streamstats':
      return streamed(results, rest);
    case 'stats':
      return counted(results, rest);
    default:
      throw new Error(`the command ${name} is not known here`);
  }
}

function withValue(fields: Fields, name: string, value: unknown): Fields {
  const copy = new Map(fields);
  if (Array.isArray(value)) copy.set(name, value);
  else if (typeof value === 'string') copy.set(name, [value]);
  else copy.delete(name);
  return copy;
}

function timeOf(fields: Fields): number {
  return Number(fields.get('_time')?.[0]);
}

/** `time_window=10m count(eval(…)) AS name BY fields`: for each result, the matches in the window that ends with it. */
function streamed(results: Results, rest: string): Results {
  const [, minutes, condition = '', name = '', by = ''] =
    /^time_window=(\d+)m count\(eval\((.*)\)\) AS (\w+) BY (.*)$/s.exec(rest) ?? [];
  const test = evalOf(condition);
  const keyOf = groupBy(by);
  const windowS = Number(minutes) * 60;
  const matches = new Map<string, number[]>();
  return results.map((fields) => {
    const key = keyOf(fields);
    if (key === null) return fields;
    const times = matches.get(key) ?? [];
    matches.set(key, times);
    if (test(fields) === true) times.push(timeOf(fields));
    const count = times.filter((time) => time > timeOf(fields) - windowS).length;
    return withValue(fields, name, String(count));
  });
}

/** `count(eval(…)) AS name, values(field) AS name BY fields`: one result for each group. */
function counted(results: Results, rest: string): Results {
  const [, list = '', by = ''] = /^(.*) BY ([^"]*)$/s.exec(rest) ?? [];
  const keyOf = groupBy(by);
  const counts = [...list.matchAll(/count\(eval\((.*?)\)\) AS (\w+)/g)].map(
    ([, condition = '', name = '']) => [name, evalOf(condition)] as const,
  );
  const groups = Map.groupBy(
    results.filter((fields) => keyOf(fields) !== null),
    (fields) => keyOf(fields) ?? '',
  );
  return [...groups].map(([key, group]) => {
    const values = counts.map(
      ([name, test]) =>
        [name, [String(group.filter((fields) => test(fields) === true).length)]] as const,
    );
    return new Map([[by.trim(), [key]], ...values]);
  });
}

/** The key of a group; null if a field is missing, as in Splunk. */
function groupBy(by: string): (fields: Fields) => string | null {
  const names = by.split(',').map((name) => name.trim());
  return (fields) => {
    const values = names.map((name) => fields.get(name)?.[0]);
    return values.includes(undefined) ? null : values.join(' ');
  };
}
