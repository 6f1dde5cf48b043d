// `sluice test`: unit tests for mappings, filters, redaction and formats. A file of tests (config/tests.ts) has records
// and expected results; each record is processed as in a run (rehearse.ts), without upstream, spool or sink. It opens
// nothing and needs no secrets.

import type { Path } from '../config/index.ts';
import {
  invalid,
  type MappingTest,
  nameFlaws,
  readTests,
  type TestsFile,
} from '../config/tests.ts';
import { ExportError, type Json, type OcsfEvent, UsageError } from '../contracts/index.ts';
import { planToLook, type WholePlan } from '../run/index.ts';
import { painted, plainTextOf, visibleBytes } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { type CommandDeps, defineCommand, usualConfig } from './shared/command.ts';
import {
  differences,
  textDifference,
  textStart,
  unrequested,
  type ValueDifference,
} from './shared/expected.ts';
import { readConfigToLook } from './shared/looking.ts';
import { type Rehearsal, rehearse, type SinkRehearsal } from './shared/rehearse.ts';

const nameLengthMax = 200;

/** 0: all hold; 1: one does not; a file or config that is wrong is thrown. */
export const test = defineCommand({
  name: 'test',
  about: 'test mappings, filters, redaction and formats with the records of a file',
  arguments: {
    files: {
      value: 'tests.yaml',
      about: 'files such as config/tests/audit-to-siem.yaml',
      several: true,
    },
  },
  options: {
    config: {
      short: '-c',
      value: 'file',
      about: 'config file; default: the one that each test file names, else as for other commands',
    },
  },
  async run({ files, config }, { env, out }) {
    const suites = await readSuites(files, config, env);
    let passed = 0;
    let failed = 0;
    for (const { file, plan, tests } of suites) {
      out(cleanText(file, nameLengthMax));
      for (const one of tests) {
        const lines = failureLines(one, plan);
        const name = cleanText(one.settings.name, nameLengthMax);
        out(`  ${lines.length === 0 ? painted('ok  ', 'good') : painted('FAIL', 'bad')}  ${name}`);
        for (const line of lines) out(`        ${line}`);
        if (lines.length === 0) passed += 1;
        else failed += 1;
      }
    }
    out(painted(`${passed} passed, ${failed} failed`, failed === 0 ? 'good' : 'bad'));
    return failed === 0 ? 0 : 1;
  },
});

interface Suite {
  readonly file: string;
  readonly plan: WholePlan;
  readonly tests: readonly MappingTest[];
}

/** All files with their plans, each config read once; all errors are reported together. */
async function readSuites(
  files: readonly string[],
  given: string | undefined,
  env: CommandDeps['env'],
): Promise<readonly Suite[]> {
  const plans = new Map<string, WholePlan>();
  const wrong: string[] = [];
  const suites: Suite[] = [];
  for (const file of files) {
    try {
      const suite = readTests(file, { env });
      const config = given ?? configFor(file, suite, env);
      const plan = plans.get(config) ?? (await planToLook(readConfigToLook(config, env).config));
      plans.set(config, plan);
      wrong.push(...flawsOf(suite, plan));
      suites.push({ file, plan, tests: suite.tests });
    } catch (error) {
      if (!(error instanceof ExportError) || error.code !== 'config_invalid') throw error;
      wrong.push(...error.message.split('\n'));
    }
  }
  if (wrong.length > 0) throw invalid([...new Set(wrong)]);
  return suites;
}

function configFor(file: string, { config }: TestsFile, env: CommandDeps['env']): string {
  const chosen = config ?? usualConfig(env);
  if (chosen !== null) return chosen;
  throw new UsageError(
    `${file} names no config: give one with -c, or write config: FILE into it, relative to it`,
  );
}

function flawsOf({ tests }: TestsFile, plan: WholePlan): readonly string[] {
  const streams = new Map(
    plan.sources.map((source) => [source.name, source.streams.map(({ name }) => name)]),
  );
  const sinks = plan.sinks.map(({ name }) => name);
  return tests.flatMap((one) => nameFlaws(one, { streams, sinks }));
}

/** The failed expectations, a line each; none: the test passes. */
function failureLines(one: MappingTest, plan: WholePlan): readonly string[] {
  const { event, without, sinks } = one.settings;
  const rehearsal = rehearsed(one, plan);
  const failures = [
    ...lookFailures({ event, without }, rehearsal.event.ocsf, []),
    ...Object.entries(sinks).flatMap(([name, expected]) => {
      const got = rehearsal.sinks.find(({ sink }) => sink.name === name);
      return got === undefined ? [] : sinkFailures(expected, got);
    }),
  ];
  return failures.flatMap(({ path, expected, found }) => [
    `${one.place(path)} ${cleanText(pathText(path), nameLengthMax)}`,
    `  ${painted('expected', 'good')}  ${expected}`,
    `  ${painted('found', 'bad')}     ${found}`,
  ]);
}

function rehearsed({ settings }: MappingTest, plan: WholePlan): Rehearsal {
  const { source, stream: requested, record, read_at } = settings;
  const streams = plan.sources.find(({ name }) => name === source)?.streams ?? [];
  const stream =
    requested === undefined ? streams[0] : streams.find(({ name }) => name === requested);
  if (stream === undefined) {
    throw new ExportError('config_invalid', `testing ${source}: it has no stream`, {
      next: 'Name a company in the upstream’s companies.',
    });
  }
  const text = typeof record === 'string' ? record.trim() : JSON.stringify(record);
  return rehearse(plan, { stream, record: Buffer.from(text), readAt: Date.parse(read_at) });
}

interface Look {
  readonly event?: Readonly<Record<string, unknown>> | undefined;
  readonly without?: readonly string[] | undefined;
}

function lookFailures(look: Look, ocsf: OcsfEvent, path: Path): readonly ValueDifference[] {
  // An event is JSON but for its type, which names attributes.
  const found = ocsf as unknown as Json;
  const under = (key: string) => (difference: ValueDifference) => ({
    ...difference,
    path: [...path, key, ...difference.path],
  });
  return [
    ...differences(look.event ?? {}, found).map(under('event')),
    ...unrequested(look.without ?? [], found).map(under('without')),
  ];
}

type SinkExpectation = MappingTest['settings']['sinks'][string];

function sinkFailures(expected: SinkExpectation, got: SinkRehearsal): readonly ValueDifference[] {
  const path = ['sinks', got.sink.name];
  if (got.event === null || got.bytes === null) {
    const found = got.left === 'unrouted' ? 'nothing: not routed' : 'nothing: filtered out';
    return expected === null ? [] : [{ path, expected: 'an event', found }];
  }
  const text = plainTextOf(got.bytes) ?? visibleBytes(got.bytes).join('\n');
  if (expected === null) return [{ path, expected: 'nothing', found: textStart(text) }];
  if (typeof expected === 'string') {
    // A YAML block (`|`) ends with a line feed that no format writes.
    const difference = textDifference(expected.replace(/\n$/, ''), text);
    return difference === null ? [] : [{ path, ...difference }];
  }
  const { contains = [], ...look } = expected;
  return [
    ...lookFailures(look, got.event.ocsf, path),
    ...contains.flatMap((part, i) => {
      if (text.includes(part)) return [];
      const at = [...path, 'contains', i];
      return [{ path: at, expected: textStart(part), found: textStart(text) }];
    }),
  ];
}

function pathText(path: Path): string {
  return path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? step : `.${step}`))
    .join('');
}
