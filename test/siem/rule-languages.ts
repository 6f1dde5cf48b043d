// Small readers of the languages of the shipped detections: conditions of Graylog's pipeline rules, YARA-L, AQL and Datadog's
// log queries. They know the forms that the content uses, and throw on anything else. Fields are read from the bytes that the
// format or sink writes, so a misspelt field finds nothing.

/** The words of a language; each pattern is sticky and matches one token. */
interface Grammar {
  readonly and: RegExp;
  readonly or: RegExp;
  readonly not: RegExp;
  readonly atom: RegExp;
}

/** A comparison in the text of a rule, judged for one event. */
export type Judge = (match: RegExpExecArray) => boolean;

/** Parses a condition with brackets, and returns its test for a judge of comparisons. */
function conditionOf(text: string, grammar: Grammar): (judge: Judge) => boolean {
  let at = 0;
  const taken = (pattern: RegExp): RegExpExecArray | null => {
    const found = new RegExp(`\\s*(?:${pattern.source})`, 'y');
    found.lastIndex = at;
    const match = found.exec(text);
    if (match !== null) at = found.lastIndex;
    return match;
  };
  type Test = (judge: Judge) => boolean;
  const either = (): Test => {
    const parts = [both()];
    while (taken(grammar.or)) parts.push(both());
    return (judge) => parts.some((part) => part(judge));
  };
  const both = (): Test => {
    const parts = [single()];
    while (taken(grammar.and)) parts.push(single());
    return (judge) => parts.every((part) => part(judge));
  };
  const single = (): Test => {
    const atom = taken(grammar.atom);
    if (atom !== null) return (judge) => judge(atom);
    if (taken(grammar.not)) {
      const inner = single();
      return (judge) => !inner(judge);
    }
    if (!taken(/\(/)) throw new Error(`no condition at: ${text.slice(at, at + 80)}`);
    const inner = either();
    if (!taken(/\)/)) throw new Error(`no closing bracket at: ${text.slice(at, at + 80)}`);
    return inner;
  };
  const whole = either();
  if (text.slice(at).trim() !== '') throw new Error(`rest: ${text.slice(at, at + 80)}`);
  return whole;
}

/** Fields of an event by name; a list has several values. */
export type FieldOf = (name: string) => readonly unknown[];

/** A regular expression of Java or RE2 with the flag `(?i)` at its start. */
function regexOf(text: string): RegExp {
  return text.startsWith('(?i)') ? new RegExp(text.slice(4), 'i') : new RegExp(text);
}

/** The condition of a pipeline rule of Graylog, and the field that it sets. */
export function graylogRule(source: string) {
  const [, when = '', field = ''] =
    /^rule "\w+"\nwhen\n([\s\S]*)\nthen\n {2}set_field\("(\w+)", "\w+"\);\nend\n$/.exec(source) ??
    [];
  const test = conditionOf(when, {
    and: /&&/,
    or: /\|\|/,
    not: /!/,
    atom: /has_field\("(\w+)"\)|regex\("((?:[^"\\]|\\.)*)", to_string\(\$message\.(\w+), ""\)\)\.matches == true|to_double\(\$message\.(\w+), -1\.0\) >= ([\d.]+)/,
  });
  const names = [...when.matchAll(/\$message\.(\w+)|has_field\("(\w+)"\)/g)].map(
    ([, a, b]) => a ?? b ?? '',
  );
  const finds = (of: FieldOf) =>
    test(([, present, pattern, text = '', number, least]) => {
      if (present !== undefined) return of(present).length > 0;
      if (number !== undefined) return Number(of(number)[0] ?? -1) >= Number(least);
      const regex = regexOf((pattern ?? '').replace(/\\(.)/g, '$1'));
      return regex.test(String(of(text)[0] ?? ''));
    });
  return { field, names, finds };
}

/** The condition of a rule in YARA-L with one event. */
export function yaraRule(text: string) {
  const events =
    /events:\n {4}\$e\.metadata\.product_log_id != ""\n([\s\S]*?)\n\n/.exec(text)?.[1] ?? '';
  const test = conditionOf(events, {
    and: /and\b/,
    or: /or\b/,
    not: /not\b/,
    atom: /re\.regex\(\$e\.([\w.]+(?:\["\w+"\])?), `([^`]*)`\)/,
  });
  const names = [...text.matchAll(/\$e\.([\w.]+(?:\["\w+"\])?)/g)].map(([, name = '']) => name);
  const finds = (of: FieldOf) =>
    test(([, name = '', pattern = '']) => regexOf(pattern).test(String(of(name)[0] ?? '')));
  return { names, finds };
}

/** A condition in AQL over custom properties. */
export function aqlCondition(text: string) {
  const test = conditionOf(text, {
    and: /AND\b/,
    or: /OR\b/,
    not: /NOT\b/,
    atom: /"([^"]+)" (?:IMATCHES '([^']*)'|>= (\d+))/,
  });
  const names = [...text.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
  const finds = (of: FieldOf) =>
    test(([, name = '', pattern, least]) => {
      const value = of(name)[0];
      if (value === undefined) return false;
      if (least !== undefined) return Number(value) >= Number(least);
      return new RegExp(`^(?:${pattern})$`, 'i').test(String(value));
    });
  return { names, finds };
}

/** A log query of Datadog: attributes are compared with regard to case. */
export function datadogQuery(text: string) {
  const values = String.raw`(?:[^\s()\\]|\\.)+`;
  const test = conditionOf(text.replace(/^source:sluice /, ''), {
    and: /AND\b/,
    or: /OR\b/,
    not: /-/,
    atom: new RegExp(
      String.raw`@([\w.]+):(?:>=(\d+)|\((${values}(?: OR ${values})*)\)|(${values}))`,
    ),
  });
  const names = [...text.matchAll(/@([\w.]+):/g)].map(([, name = '']) => name);
  const finds = (of: FieldOf) =>
    test(([, name = '', least, many, one]) => {
      if (least !== undefined) return of(name).some((value) => Number(value) >= Number(least));
      const patterns = (many ?? one ?? '').split(' OR ').map(wildcard);
      return of(name).some((value) => patterns.some((pattern) => pattern.test(String(value))));
    });
  return { names, finds };
}

/** `*` is any text; a backslash stands before a character without a meaning. */
function wildcard(text: string): RegExp {
  const source = [...text.matchAll(/\\(.)|(.)/gsu)].map(([, escaped, plain]) => {
    if (escaped === undefined && plain === '*') return '.*';
    return (escaped ?? plain ?? '').replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  });
  return new RegExp(`^${source.join('')}$`, 'su');
}
