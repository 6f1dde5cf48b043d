// How the tests run. One project: a receiver that is dear to start (Kafka, rsyslog's packages, the
// throw-away CA) is started by `test/support/global-setup.ts` when a test first asks for it, so a
// run of one unit test file starts nothing. Two files run side by side, one per core; a JSON report
// is written where SLUICE_TEST_REPORT says, for scripts that count what passed.
import { defineConfig } from 'vitest/config';

const nodeMajor = Number(process.versions.node.split('.')[0]);
if (nodeMajor < 26) {
  throw new Error(
    `the tests need Node 26 or newer, and this is ${process.version}: start them with \`npx vitest\` ` +
      'or `npm test`, which use the Node in node_modules (run `npm ci` first)',
  );
}

const reportFile = process.env.SLUICE_TEST_REPORT;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // kafkajs asks for negative timeouts on current Node, harmlessly (tulios/kafkajs issue 1751).
    execArgv: ['--disable-warning=TimeoutNegativeWarning'],
    // Bounds on a test that hangs, and no measure of speed: many busy processes beside it change no verdict.
    testTimeout: 180_000,
    hookTimeout: 300_000,
    teardownTimeout: 20_000,
    // Real brokers and receivers now and then do what another try does not show; the report names what was tried again.
    retry: process.env.CI === 'true' ? 2 : 0,
    reporters: reportFile ? ['default', ['json', { outputFile: reportFile }]] : ['default'],
  },
});
