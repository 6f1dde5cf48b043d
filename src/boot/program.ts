// The command line: which commands there are, what they take, and the code the program ends with. Each command's module
// is loaded only when it is run, so that `--help` and a misspelt flag cost next to nothing. Names, flags and exit
// codes are what people's scripts rely on: none is ever renamed.

import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { asExportError, ExportError } from '../contracts/errors.ts';
import { type ExitCode, failureText, type Means, UsageError } from './command.ts';

/** Runs one command line to its end. Whatever happens, it is told on stderr and becomes an exit code. */
export async function runProgram(args: readonly string[], means: Means): Promise<ExitCode> {
  let code: ExitCode = 0;
  const program = commandLine(means, (ended) => {
    code = ended;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    return tellFailure(error, means);
  }
}

/** An error that nobody expected, with a request to report it. */
export function unexpectedText(error: unknown): string {
  return failureText(asExportError(error, 'an error that sluice did not expect'));
}

function tellFailure(error: unknown, { err }: Means): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has said by itself what is wrong; asking for help or the version is nothing wrong.
    return error.exitCode === 0 ? 0 : 64;
  }
  if (error instanceof UsageError) {
    err(`error: ${error.message}`);
    return 64;
  }
  if (error instanceof ExportError) {
    err(failureText(error));
    return error.code === 'config_invalid' ? 2 : 1;
  }
  err(unexpectedText(error));
  return 1;
}

type End = (code: ExitCode) => void;

function commandLine(means: Means, end: End): Command {
  const program = new Command('sluice')
    .description('Exports audit events, security logs and firewall changes, losing nothing.')
    .version(version(), '-V, --version')
    .exitOverride()
    .showHelpAfterError('(see --help)')
    .helpOption('-h, --help', 'say what there is')
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => means.out(text.trimEnd()),
      writeErr: (text) => means.err(text.trimEnd()),
    });
  addRun(program, means, end);
  addLooking(program, means, end);
  addCheckpoint(program, means, end);
  addDeadLetters(program, means, end);
  addTap(program, means, end);
  addTrying(program, means, end);
  return program;
}

function version(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return version;
}

const configOption = () =>
  new Option('-c, --config <file>', 'the config').makeOptionMandatory(true);
const levelOption = () =>
  new Option(
    '--log-level <level>',
    "from which level on lines are logged; the config's log.level",
  ).choices(['debug', 'info', 'warn', 'error']);

function addRun(program: Command, means: Means, end: End): void {
  program
    .command('run')
    .description('fetch, hold and send until SIGTERM or SIGINT, then drain')
    .addOption(configOption())
    .option('--once', 'read every source up to its tail once, deliver everything, then end')
    .option('--timeout <duration>', 'with --once: how long that may take, such as 60s')
    .addOption(levelOption())
    .action(async (options) => end(await (await import('./commands/run.ts')).run(options, means)));
}

function addLooking(program: Command, means: Means, end: End): void {
  program
    .command('check')
    .description('say whether the config is right, and what to know about it')
    .addOption(configOption())
    .option('--connect', 'also ask each upstream for one record and each sink for a connection')
    .addOption(levelOption())
    .action(async (options) =>
      end(await (await import('./commands/check.ts')).check(options, means)),
    );
  program
    .command('status')
    .description('show streams, spool and sinks, also while another process runs')
    .addOption(configOption())
    .option('--json', 'as JSON')
    .action(async (options) =>
      end(await (await import('./commands/status.ts')).status(options, means)),
    );
  program
    .command('schema')
    .description('print the JSON Schema of the config, for editors')
    .action(async () => end(await (await import('./commands/schema.ts')).schema(means)));
}

function addCheckpoint(program: Command, means: Means, end: End): void {
  const checkpoint = program
    .command('checkpoint')
    .description('see or move a stream’s checkpoint')
    .helpCommand(false);
  const module = () => import('./commands/checkpoint.ts');
  const streamOption = () =>
    new Option('--stream <name>', 'the stream, as status names it').makeOptionMandatory(true);
  checkpoint
    .command('show')
    .description('what is known of a stream; no cursor is printed')
    .addOption(configOption())
    .addOption(streamOption())
    .action(async (options) => end(await (await module()).show(options, means)));
  checkpoint
    .command('reset')
    .description('read the stream anew from its start; what was delivered is not delivered again')
    .addOption(configOption())
    .addOption(streamOption())
    .option('--forget', 'forget what was read, so that everything is delivered again')
    .action(async (options) => end(await (await module()).reset(options, means)));
  checkpoint
    .command('rewind')
    .description('read the stream again from where it was at a time; repeats are left out')
    .addOption(configOption())
    .addOption(streamOption())
    .addOption(new Option('--to <time>', 'RFC 3339 time').makeOptionMandatory(true))
    .option('--forget', 'forget what was read since, so that it is delivered again')
    .action(async (options) => end(await (await module()).rewind(options, means)));
}

function addDeadLetters(program: Command, means: Means, end: End): void {
  const letters = program
    .command('dead-letters')
    .description('events that a sink refused for good: list, send again, or drop')
    .helpCommand(false);
  const module = () => import('./commands/dead-letters.ts');
  const sinkOption = () => new Option('--sink <name>', 'only those of this sink');
  letters
    .command('list')
    .description('what was refused, and why')
    .addOption(configOption())
    .addOption(sinkOption())
    .option('--json', 'one JSON object a line')
    .action(async (options) => end(await (await module()).list(options, means)));
  letters
    .command('retry')
    .description('put them back for their sink, also while another process runs')
    .addOption(configOption())
    .addOption(sinkOption())
    .action(async (options) => end(await (await module()).retry(options, means)));
  letters
    .command('drop')
    .description('delete them for good')
    .addOption(configOption())
    .addOption(sinkOption())
    .action(async (options) => end(await (await module()).drop(options, means)));
}

function addTap(program: Command, means: Means, end: End): void {
  program
    .command('tap')
    .description('show events as a sink would see them; writes nothing, moves nothing')
    .addOption(configOption())
    .option('--source <name>', 'only those of this source')
    .option('--format <type>', 'json, cef or syslog', 'json')
    .addOption(levelOption())
    .addHelpText(
      'after',
      `
While another process runs with this config, tap shows what that process fetches from now on. Else it
fetches by itself, from each stream's checkpoint on (from its start if it has none), into a directory
of its own that is removed at the end: the next run fetches the same events again. Ends with Ctrl-C.`,
    )
    .action(async (options) => end(await (await import('./commands/tap.ts')).tap(options, means)));
}

function addTrying(program: Command, means: Means, end: End): void {
  program
    .command('sandbox')
    .description('serve both upstream APIs on loopback, with invented data that grows')
    .option('--port <n>', 'port on 127.0.0.1; any free one if left out')
    .option('--events <n>', 'audit events, and log records per list, at the start', '500')
    .option('--rate <n/s>', 'new audit events a second; logs grow three times as fast', '2/s')
    .option('--faults <file>', 'a script of what goes wrong, such as config/sandbox-faults.yaml')
    .action(async (options) =>
      end(await (await import('./commands/sandbox.ts')).sandbox(options, means)),
    );
  program
    .command('quickstart', { hidden: true })
    .description('sandbox in, events on the screen and in ./out: what `npm start` runs')
    .addOption(levelOption())
    .action(async (options) =>
      end(await (await import('./commands/quickstart.ts')).quickstart(options, means)),
    );
}
