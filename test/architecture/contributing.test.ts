// CONTRIBUTING.md and the forms of .github as a contributor uses them. Invariant: each file, folder and `npm run` task
// that they name exists, each task has its row, and each listed sink, source, format and command has the files of its checklist.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { sinks } from '../../connectors/index.ts';
import { sources } from '../../connectors/sources/index.ts';
import { program } from '../../docs/generate/commands.ts';
import { formats } from '../../formats/index.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const text = read('CONTRIBUTING.md');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const forms = globSync('.github/ISSUE_TEMPLATE/*.yml', { cwd: root }).toSorted();

const field = <T extends z.ZodRawShape>(attributes: T) => ({
  id: z.string().regex(/^[\w-]+$/),
  attributes: z.strictObject({
    label: z.string(),
    description: z.string().optional(),
    ...attributes,
  }),
  validations: z.strictObject({ required: z.boolean() }).optional(),
});
/** A form as GitHub reads it ("Syntax for GitHub's form schema"), as far as the forms here use it. */
const formShape = z.strictObject({
  name: z.string(),
  description: z.string(),
  title: z.string(),
  labels: z.array(z.string()),
  body: z.array(
    z.discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('markdown'),
        attributes: z.strictObject({ value: z.string() }),
      }),
      z.strictObject({
        type: z.literal('input'),
        ...field({ placeholder: z.string().optional() }),
      }),
      z.strictObject({
        type: z.literal('textarea'),
        ...field({ placeholder: z.string().optional(), render: z.string().optional() }),
      }),
      z.strictObject({
        type: z.literal('dropdown'),
        ...field({ options: z.array(z.string()).min(2) }),
      }),
    ]),
  ),
});
const pages = ['CONTRIBUTING.md', '.github/pull_request_template.md', ...forms];

describe.each(pages)('%s', (page) => {
  test('names npm tasks that exist', () => {
    const named = [...read(page).matchAll(/npm run ([\w-]+)/g)].map(([, task = '']) => task);

    expect(named.filter((task) => scripts[task] === undefined)).toEqual([]);
  });

  test('names files and folders that exist', () => {
    const paths = /`((?:src|connectors|formats|test|docs|config|deploy)\/[\w./*-]+|[A-Z]+\.md)`/g;
    const named = [...read(page).matchAll(paths)]
      .map(([, path = '']) => path)
      .filter((path) => !path.includes('NAME'));

    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

test('each npm task has a row in the tables of tasks, and no other', () => {
  const rows = [...text.matchAll(/^\| `npm (?:run )?([\w:-]+)/gm)].map(([, task = '']) => task);
  // `npm ci` runs it; the row of the bundle names it.
  const tasks = Object.keys(scripts).filter((task) => task !== 'prepare');

  expect(new Set(rows)).toEqual(new Set(tasks));
});

/** Those of the help; `help` is commander's. */
const commands = program
  .createHelp()
  .visibleCommands(program)
  .map((command) => command.name())
  .filter((name) => name !== 'help');

/** The checklists: names of the listed members, where each is defined, and files of the checklist that must name each. */
const checklists = [
  {
    kind: 'sink',
    names: sinks.map(({ type }) => type),
    defined: 'connectors/sinks/*.ts',
    naming: ['test/deploy/release.test.ts', 'config/schema.json'],
  },
  {
    kind: 'source',
    names: sources.map(({ type }) => type),
    defined: 'connectors/sources/*.ts',
    naming: [
      'test/contracts/sources.test.ts',
      'test/all-sources/sources.ts',
      'config/all-sources.yaml',
      'docs/sources/README.md',
      'config/schema.json',
    ],
  },
  {
    kind: 'format',
    names: formats.map(({ type }) => type),
    defined: 'formats/*.ts',
    naming: ['test/formats/formats.test.ts', 'config/schema.json'],
  },
  {
    kind: 'command',
    names: commands,
    defined: 'src/commands/*.ts',
    naming: ['docs/commands.md', 'test/golden/help.txt'],
  },
] as const;

describe.each(checklists)('the checklist "Add a $kind"', ({ kind, names, defined, naming }) => {
  const checklist = text.split(`## Add a ${kind}\n`)[1]?.split('\n## ')[0] ?? '';
  const steps = checklist.match(/^\d+\. \[ \] .*(?:\n {3}.*)*/gm) ?? [];
  const paths = [...steps.join('\n').matchAll(/`([\w/-]+\/[\w.*/-]+)`/g)].map(
    ([, path = '']) => path,
  );
  const isFile = (pattern: string, name: string) => {
    const codeName = pattern.endsWith('.ts') ? name.replaceAll('_', '-') : name;
    return globSync(pattern.replace('NAME', codeName), { cwd: root }).length > 0;
  };

  test('has steps, each with a file', () => {
    expect(names.length).toBeGreaterThan(5);
    expect(steps.length).toBeGreaterThan(4);
    expect(steps.filter((step) => !/`[\w/-]+\/|`(?:src|test|formats)`/.test(step))).toEqual([]);
  });

  test('leads to files that each member has', () => {
    const patterns = paths.filter((path) => /NAME[\w*]*\./.test(path));

    expect(patterns.length).toBeGreaterThan(0);
    for (const pattern of patterns) {
      expect([pattern, names.filter((name) => !isFile(pattern, name))]).toEqual([pattern, []]);
    }
  });

  test('leads to a definition of each member', () => {
    const code = globSync(defined, { cwd: root }).map(read).join('\n');
    const isDefined = (name: string) => new RegExp(`\\b(?:type|name): '${name}'`).test(code);

    expect(names.filter((name) => !isDefined(name))).toEqual([]);
  });

  test.each(naming)('leads to %s, which names each member', (path) => {
    const there = read(path);

    expect(paths).toContain(path);
    expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(there))).toEqual([]);
  });
});

test('each command runs in a test', () => {
  const tests = globSync('test/**/*.test.ts', { cwd: root }).map(read).join('\n');
  expect(commands.filter((name) => !tests.includes(`'${name}'`))).toEqual([]);
});

describe.each(forms.filter((path) => !path.endsWith('config.yml')))('%s', (path) => {
  const form = formShape.parse(parse(read(path)));
  const fields = form.body.flatMap((part) => (part.type === 'markdown' ? [] : [part]));

  test('has a label and an id of its own for each field', () => {
    for (const values of [
      fields.map(({ id }) => id),
      fields.map(({ attributes }) => attributes.label),
    ]) {
      expect(new Set(values).size).toBe(values.length);
    }
  });

  test('warns first that no records and tokens may be pasted', () => {
    const [first] = form.body;

    expect(first?.type === 'markdown' && first.attributes.value).toMatch(/^Never paste records/);
  });
});

test('the bug report requires version, config and log lines', () => {
  const { body } = formShape.parse(parse(read('.github/ISSUE_TEMPLATE/bug_report.yml')));
  const required = body.flatMap((part) =>
    part.type !== 'markdown' && part.validations?.required ? [part.id] : [],
  );

  expect(required).toEqual(expect.arrayContaining(['version', 'config', 'log']));
});
