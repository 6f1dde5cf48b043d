// How the tests run. A receiver that is dear to start (Kafka, rsyslog's packages, the throw-away CA) is started by
// `test/support/global-setup.ts` when a test first needs it, so a run of one unit test file starts nothing. Tests mostly
// wait, for programs and intervals, so more files run side by side than there are cores. Files that change or
// measure what is the whole process's have a process each; all others share processes, which spares each its start. Those
// that start programs come first since they last longest. SLUICE_TEST_FOREIGN=off leaves out those that need a program of
// somebody else's, which has to be fetched or built: Kafka, OpenSearch, an S3 server, rsyslog, Chromium, Go.
// SLUICE_TEST_ONLY=shared runs only the tests that read ../shared where it exists. Tests with the tag `long` have a short
// form beside them; SLUICE_TEST_LONG=1 runs them too, and `npm run test:long` runs only them. SLUICE_TEST_REPORT names
// the file for a JSON report, from which scripts count the tests.
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { roomyDir } from './test/support/memory.ts';

const nodeMajor = Number(process.versions.node.split('.')[0]);
if (nodeMajor < 26) {
  throw new Error(
    `the tests need Node 26 or newer, and this is ${process.version}: start them with \`npx vitest\` ` +
      'or `npm test`, which use the Node in node_modules (run `npm ci` first)',
  );
}

// The spool's threads, hundreds in a run, would otherwise strip the types of all their files again.
process.env.NODE_COMPILE_CACHE ||= join(import.meta.dirname, 'node_modules/.cache/sluice-compiled');
process.env.TMPDIR ||= roomyDir();

/** Without records of earlier runs vitest begins with the largest files. These last longer than their size suggests. */
const long =
  /\/test\/(journeys|simulation|cluster|succession|contracts\/sinks|connectors\/sinks\/kafka)/;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ project, moduleId }: TestSpecification) =>
      (project.name === 'together' ? 2 : 0) + (long.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

const reportFile = process.env.SLUICE_TEST_REPORT;
const needingForeignPrograms = importing(/from '[^']*\/cache\.ts'/);
const readingShared = importing(/\.\.\/shared\/(?:data|contract|\$\{)/);
const only = process.env.SLUICE_TEST_ONLY;
const tests = globSync('test/**/*.test.ts', { cwd: import.meta.dirname })
  .filter((file) => process.env.SLUICE_TEST_FOREIGN !== 'off' || !needingForeignPrograms(file))
  .filter((file) => only !== 'shared' || readingShared(file))
  .filter((file) => only !== 'long' || importing(/\['long'\]|@module-tag long/)(file));
// The change that test/support/kafka.ts makes to kafkajs concerns only its own reader.
const ofTheProcess = importing(
  /node:worker_threads|\bvi\.|\.prototype\b(?! as OffsetLister)|memoryUsage/,
);
const startingPrograms = importing(/node:child_process/);
const alone = tests.filter(ofTheProcess);
const shared = tests.filter((file) => !ofTheProcess(file));

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: Math.ceil(availableParallelism() * 3.5),
    sequence: { sequencer: LongestFirst },
    // kafkajs sets negative timeouts on current Node, which is harmless (tulios/kafkajs issue 1751).
    execArgv: ['--disable-warning=TimeoutNegativeWarning'],
    // Bounds on a test that hangs, and no measure of speed: many busy processes beside it change no verdict.
    testTimeout: 900_000,
    // On a new machine what a test needs is downloaded or built in a hook, which takes minutes beside other tests.
    hookTimeout: 1_200_000,
    teardownTimeout: 20_000,
    expect: { poll: { timeout: 300_000, interval: 20 } },
    tags: [
      {
        name: 'long',
        description: 'the suite has a short form of it',
        skip: process.env.SLUICE_TEST_LONG !== '1',
      },
    ],
    // Real brokers and receivers now and then do what another try does not show; the report says what was tried again, and why.
    retry: process.env.CI === 'true' ? 2 : 0,
    reporters: [
      'default',
      './test/support/retry-reporter.ts',
      ...(reportFile ? [['json', { outputFile: reportFile }] as ['json', object]] : []),
    ],
    projects: [
      { extends: true, test: { name: 'alone', include: alone } },
      {
        extends: true,
        test: { name: 'programs', include: shared.filter(startingPrograms), isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'together',
          include: shared.filter((file) => !startingPrograms(file)),
          isolate: false,
        },
      },
    ],
  },
});

/** Returns a check of a test file: true if the text of the file, or of one that it imports, matches. */
function importing(sign: RegExp): (file: string) => boolean {
  const known = new Map<string, boolean>();
  const judge = (file: string): boolean => {
    const judged = known.get(file);
    if (judged !== undefined) return judged;
    known.set(file, false); // until the file is read: test files import each other in cycles
    const text = readFileSync(join(import.meta.dirname, file), 'utf8');
    const imported = text.matchAll(/^(?:import|export) (?!type)[^;]*? from '(\.[^']+)'/gm);
    const found =
      sign.test(text) ||
      Array.from(imported, ([, path = '']) => join(dirname(file), path))
        .filter((path) => path.startsWith('test/'))
        .some(judge);
    known.set(file, found);
    return found;
  };
  return judge;
}
