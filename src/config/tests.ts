// A file of tests for mappings, filters, redaction and formats: records, and the expected results.
// It is parsed like a config, with every flaw reported at its location. Each expectation keeps its
// location for a failure report.
//
//   config: ./sluice.yaml                 which config is tested; relative to this file
//   tests:
//     - name: a login is an Authentication event
//       source: audit                     stream: web_logs/c-2 chooses another than the source's first
//       record: { id: "1", action: … }    or its JSON text, for bytes that matter and numbers beyond 2^53
//       event: { class_uid: 3002 }        the named attributes have these values; others are not looked at
//       without: [src_endpoint]           paths that it does not have
//       sinks:
//         siem: "CEF:0|…"                 exactly this text
//         daily: { event: …, without: …, contains: ["duser=\[x\]"] }
//         archive: null                   nothing: not routed, or filtered out

import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { ExportError } from '../contracts/index.ts';
import { hint } from '../tools/index.ts';
import { locate, parseBlock } from './block.ts';
import { classesOf, pathFlaw } from './event-paths.ts';
import { Flaws, flawText, type Path } from './flaws.ts';
import { readFile, type Surroundings, whyUnreadable } from './references.ts';
import { readWritten, type WrittenValue } from './written.ts';

const attributes = () => z.record(z.string(), z.unknown());
const paths = () => z.array(z.string().min(1));
const timeRule = 'expected an RFC 3339 time such as 2026-01-31T08:00:00Z';

/** The expected result at a sink: exactly this text, an event with these attributes, or nothing. */
const sinkExpectation = z.union([
  z.null(),
  z.string(),
  z.strictObject({
    event: attributes().optional(),
    without: paths().optional(),
    contains: z.array(z.string().min(1)).optional(),
  }),
]);

const testBlock = z
  .strictObject({
    name: z.string().min(1),
    source: z.string().min(1),
    stream: z.string().min(1).optional(),
    record: z.union([
      z.string().refine(isJson, 'expected one record as JSON text, or a mapping'),
      attributes(),
    ]),
    read_at: z.iso.datetime({ offset: true, error: timeRule }).prefault('2026-01-01T00:00:00Z'),
    event: attributes().optional(),
    without: paths().optional(),
    sinks: z.record(z.string(), sinkExpectation).default({}),
  })
  .refine(
    ({ event, without, sinks }) => event ?? without ?? Object.keys(sinks)[0],
    'it expects nothing; give it event, without or sinks',
  );

const fileKeys = z.strictObject({
  config: z.string().min(1).optional(),
  tests: z.array(z.unknown()).min(1),
});

/** One test. */
export interface MappingTest {
  readonly settings: z.output<typeof testBlock>;
  /** `FILE:LINE:COLUMN` of the value at a path of the test. */
  place(path: Path): string;
}

/** A file of tests. */
export interface TestsFile {
  /** The config it names, absolute. */
  readonly config: string | null;
  readonly tests: readonly MappingTest[];
}

/** The names that tests may use. */
export interface TestableNames {
  /** Names of the streams, by source. */
  readonly streams: ReadonlyMap<string, readonly string[]>;
  readonly sinks: readonly string[];
}

/**
 * Reads a file of tests. Throws `config_invalid` with a line `FILE:LINE:COLUMN PATH: MESSAGE` for each flaw.
 * `nameFlaws` checks the names once the config is known.
 */
export function readTests(file: string, configEnv: Surroundings): TestsFile {
  const flaws = new Flaws();
  const top = readWritten(textOf(file, configEnv), configEnv, flaws);
  const keys = top && parseBlock(fileKeys, { written: top, path: [] }, flaws);
  const tests = [...(top?.children?.get('tests')?.children?.values() ?? [])].flatMap(
    (written, index) => {
      const path = ['tests', index];
      const settings = parseBlock(testBlock, { written, path }, flaws);
      return settings === undefined ? [] : [{ settings, place: placer(file, written, flaws) }];
    },
  );
  if (flaws.count > 0 || !keys)
    throw invalid(flaws.list('error').map((flaw) => flawText(file, flaw)));
  const { config } = keys;
  return { config: config === undefined ? null : resolve(dirname(file), config), tests };
}

/** Names of a test that its config does not have, and tests without an event, a line each. */
export function nameFlaws(
  { settings, place }: MappingTest,
  { streams, sinks }: TestableNames,
): readonly string[] {
  const { source, stream, sinks: expected } = settings;
  const ofSource = streams.get(source);
  if (ofSource === undefined) {
    return [`${place(['source'])} source: unknown source${hint(source, streams.keys())}`];
  }
  const strange =
    stream === undefined || ofSource.includes(stream)
      ? []
      : [`${place(['stream'])} stream: ${source} has no such stream${hint(stream, ofSource)}`];
  const unknown = Object.keys(expected).flatMap((sink) =>
    sinks.includes(sink)
      ? []
      : [`${place(['sinks', sink])} sinks: unknown sink${hint(sink, sinks)}`],
  );
  return [...strange, ...unknown, ...absenceFlaws({ settings, place })];
}

// Every misspelt path is absent, so a path in `without` must be one that events can have.
function absenceFlaws({ settings, place }: Pick<MappingTest, 'settings' | 'place'>) {
  const requested: (readonly [Path, readonly string[] | undefined])[] = [
    [['without'], settings.without],
    ...Object.entries(settings.sinks).map(
      ([sink, gets]) =>
        [['sinks', sink, 'without'], typeof gets === 'object' ? gets?.without : undefined] as const,
    ),
  ];
  return requested.flatMap(([path, absent = []]) =>
    absent.flatMap((dotted, index) => {
      const steps = dotted.split('.').map((step) => (/^\d+$/.test(step) ? null : step));
      const flaw = pathFlaw(steps, classesOf(null), 'each');
      return flaw === null ? [] : [`${place([...path, index])} ${path.join('.')}: ${flaw}`];
    }),
  );
}

/** All flaws as one error. */
export function invalid(lines: readonly string[]): ExportError {
  return new ExportError('config_invalid', lines.join('\n'), {
    next: 'Correct each error, then test again. Nothing was tested.',
  });
}

function textOf(file: string, configEnv: Surroundings): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFile(file, configEnv));
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8 text' : whyUnreadable(error);
    throw invalid([`${file}: the tests cannot be read: ${why}`]);
  }
}

function placer(file: string, test: WrittenValue, { lines }: Flaws): MappingTest['place'] {
  return (path) => {
    const { found } = locate(test, path);
    const { line, col } = lines.linePos(found.keyAt ?? found.at);
    return `${file}:${line}:${col}`;
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
