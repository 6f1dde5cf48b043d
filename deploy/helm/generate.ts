// `npm run docs` also runs this: it writes README.md and values.schema.json of the chart from values.yaml and its comments.
// A comment with `# --` describes the value below it. Invariant: running it again changes nothing, so that a test can
// detect a stale file.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';

/** A described value: its path, default and description. */
interface Described {
  readonly path: string;
  readonly value: unknown;
  readonly about: string;
}

const values = parseDocument(readFileSync(join(import.meta.dirname, 'values.yaml'), 'utf8'));

/** Maps whose keys the user chooses, or that Kubernetes defines. */
const isOpen = ({ about, value }: Described) => about !== '' && typeof value === 'object';

/** Values with a fixed set, or with a shape that the default does not show. */
const shapes: Readonly<Record<string, object>> = {
  mode: { enum: ['local', 'kafka'] },
  replicas: { type: 'integer', minimum: 0 },
  'image.digest': { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
  'image.pullPolicy': { enum: ['Always', 'IfNotPresent', 'Never'] },
  'persistence.whenDeleted': { enum: ['Retain', 'Delete'] },
  'status.port': { type: 'integer', minimum: 1, maximum: 65_535 },
  'topologySpread.whenUnsatisfiable': { enum: ['ScheduleAnyway', 'DoNotSchedule'] },
  'podDisruptionBudget.maxUnavailable': { type: ['integer', 'string'] },
  'networkPolicy.egressPorts': { type: 'array', items: { type: 'integer' } },
};

function described(map: YAMLMap, above = ''): readonly Described[] {
  return map.items.flatMap((pair) => {
    const { key, value } = pair as Pair;
    const path = `${above}${isScalar(key) ? key.value : key}`;
    const comment = isScalar(key) ? key.commentBefore : null;
    // The comment of the first key belongs to its map.
    const text = comment ?? (pair === map.items[0] ? map.commentBefore : null) ?? '';
    const about = /(?:^|\n) -- ([\s\S]*)$/.exec(text)?.[1]?.replace(/\n\s*/g, ' ') ?? '';
    const plain = values.getIn(path.split('.'), true);
    const js = isMap(plain) || isScalar(plain) ? plain.toJSON() : JSON.parse(JSON.stringify(plain));
    if (about === '' && isMap(value)) return described(value, `${path}.`);
    return [{ path, value: js, about }];
  });
}

/** All values of the chart. Throws if one has no description. */
export function chartValues(): readonly Described[] {
  if (!isMap(values.contents)) throw new Error('values.yaml is no map');
  const all = described(values.contents);
  const bare = all.filter(({ about }) => about === '');
  if (bare.length > 0) throw new Error(`no description: ${bare.map(({ path }) => path)}`);
  return all;
}

/** The schema of the values: a misspelt key is refused. */
export function chartSchema(): string {
  const root = object();
  for (const one of chartValues()) {
    const parts = one.path.split('.');
    const last = parts.pop() ?? '';
    let at = root;
    for (const part of parts) {
      at.properties[part] ??= object();
      at = at.properties[part] as Section;
    }
    at.properties[last] = { description: one.about, ...(shapes[one.path] ?? shapeOf(one)) };
  }
  // Helm adds these two to the values of a chart that is part of another.
  root.properties.global = { type: 'object' };
  const schema = { $schema: 'http://json-schema.org/draft-07/schema#', ...root };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

interface Section {
  readonly type: 'object';
  readonly additionalProperties: boolean;
  readonly properties: Record<string, object>;
}

function object(): Section {
  return { type: 'object', additionalProperties: false, properties: {} };
}

function shapeOf(one: Described): object {
  if (Array.isArray(one.value)) return { type: 'array' };
  return isOpen(one) ? { type: 'object' } : { type: typeof one.value };
}

/** README.md of the chart: its text, with the table of values as it is now. */
export function chartReadme(text: string): string {
  const rows = chartValues().map(
    ({ path, value, about }) => `| \`${path}\` | \`${JSON.stringify(value)}\` | ${about} |`,
  );
  const table = ['| value | default | meaning |', '|---|---|---|', ...rows].join('\n');
  return text.replace(
    /(<!-- generated: values -->\n)[\s\S]*?(<!-- end -->)/,
    (_, begin: string, end: string) => `${begin}${table}\n${end}`,
  );
}

if (import.meta.main) {
  const readme = join(import.meta.dirname, 'README.md');
  writeFileSync(readme, chartReadme(readFileSync(readme, 'utf8')));
  writeFileSync(join(import.meta.dirname, 'values.schema.json'), chartSchema());
}
