// Which commands there are and what they take. Each command's module is loaded only when it is run, so that `--help` and a
// misspelt flag cost next to nothing. Names and flags are what people's scripts rely on: none is ever renamed. The name
// of an option's value or of an argument says to `completion` what it is: a file, a directory, or a text of one's own.

import { Argument, Command, Option } from 'commander';
import { hint } from '../../config/nearest.ts';
import { UsageError } from '../../contracts/errors.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { version } from '../../tools/version.ts';
import { type ExitCode, type Means, usualConfig } from './command.ts';
import { sinkKinds } from './new-config.ts';

type End = (code: ExitCode) => void;

/** The whole command line; the action of the command that is run hands its exit code to `end`. */
export function commandLine(means: Means, end: End): Command {
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
  program.hook('preAction', (_, command) => nameConfig(command, means));
  addRun(program, means, end);
  addConfig(program, means, end);
  addLooking(program, means, end);
  addRetry(program, means, end);
  addCheckpoint(program, means, end);
  addBackfill(program, means, end);
  addDeadLetters(program, means, end);
  addTap(program, means, end);
  addTrying(program, means, end);
  addCompletion(program, means, end);
  return program;
}

const configOption = () =>
  new Option('-c, --config <file>', 'the config; left out: $SLUICE_CONFIG, else ./sluice.yaml');

/** Gives a command that reads a config the usual one where it was typed without; `test` has files that name theirs. */
function nameConfig(command: Command, { env }: Means): void {
  const isRead = command.options.some(({ long }) => long === '--config');
  if (!isRead || command.name() === 'test' || command.getOptionValue('config') !== undefined) {
    return;
  }
  const usual = usualConfig(env);
  if (usual === null) {
    throw new UsageError(
      'which config? Name it with -c, --config FILE or in $SLUICE_CONFIG; there is no ./sluice.yaml',
    );
  }
  command.setOptionValue('config', usual);
}

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
    .option('--allow-removal', 'let a changed config drop streams and sinks while this runs')
    .addOption(levelOption())
    .action(async (options) => end(await (await import('../run.ts')).run(options, means)));
}

function addConfig(program: Command, means: Means, end: End): void {
  program
    .command('init')
    .description('write a first config, asking for what it needs; see its --help for flags')
    .option(
      '-c, --config <file>',
      'the config to write; left out: $SLUICE_CONFIG, else ./sluice.yaml',
      means.env.SLUICE_CONFIG || 'sluice.yaml',
    )
    .option('--unified <url>', 'base address of the unified API, for audit events')
    .option('--services <url>', 'base address of the services API, for logs and firewall')
    .option('--companies <ids>', 'company ids of the services API, with commas')
    .option('--scope <urn>', 'scope of the services API')
    .option('--logs <path>', 'a log list of the services API; {company_id} stands for each company')
    .option('--secrets <dir>', 'directory of files with the credentials; else from the environment')
    .addOption(new Option('--sink <type>', 'where events go').choices(Object.keys(sinkKinds)))
    .option('--to <address>', 'its file, address, brokers/topic or URL')
    .option('--force', 'overwrite a config that is there')
    .action(async (options) => end(await (await import('../init.ts')).init(options, means)));
  program
    .command('check')
    .description('say whether the config is right, and what to know about it')
    .addOption(configOption())
    .option('--why', 'also run the newest held events through every filter and redaction')
    .option('--connect', 'also ask each upstream for one record and each sink for a connection')
    .addOption(levelOption())
    .action(async (options) => end(await (await import('../check.ts')).check(options, means)));
  program
    .command('preview')
    .description('show what becomes of a record: its event, its routes, and what each sink gets')
    .argument('<record.json>', 'a file with one record as upstream sends it; - for standard input')
    .addOption(configOption())
    .option('--source <name>', 'whose record it is; needed where there are several sources')
    .option('--sink <name>', 'only what this sink gets')
    .action(async (file, options) =>
      end(await (await import('../preview.ts')).preview(file, options, means)),
    );
  program
    .command('test')
    .description('test mappings, filters, redaction and formats with the records of a file')
    .argument('<tests.yaml...>', 'files such as config/tests/audit-to-siem.yaml')
    .option(
      '-c, --config <file>',
      'the config; left out: the one each file names, else as anywhere',
    )
    .action(async (files, options) =>
      end(await (await import('../test.ts')).test(files, options, means)),
    );
  program
    .command('schema')
    .description('print the JSON Schema of the config, for editors')
    .action(async () => end(await (await import('../schema.ts')).schema(means)));
}

function addLooking(program: Command, means: Means, end: End): void {
  program
    .command('status')
    .description('show streams, spool and sinks, also while another process runs')
    .addOption(configOption())
    .option('--json', 'as JSON')
    .action(async (options) => end(await (await import('../status.ts')).status(options, means)));
  program
    .command('top')
    .description('watch the running process; q quits')
    .addOption(configOption())
    .action(async (options) => end(await (await import('../top.ts')).top(options, means)));
  program
    .command('explain')
    .description('say what a stream is doing, why it waits, and what to do')
    .argument('<stream>', 'the stream, as status names it')
    .addOption(configOption())
    .action(async (stream, options) =>
      end(await (await import('../explain.ts')).explain(stream, options, means)),
    );
}

function addRetry(program: Command, means: Means, end: End): void {
  program
    .command('retry')
    .description('ask a waiting or halted stream or sink now; what it was told to wait is kept')
    .argument('<stream|sink>', 'which, as status names it')
    .addOption(configOption())
    .action(async (name, options) =>
      end(await (await import('../retry.ts')).retry(name, options, means)),
    );
}

function addCheckpoint(program: Command, means: Means, end: End): void {
  const checkpoint = program
    .command('checkpoint')
    .description('see or move a stream’s checkpoint')
    .helpCommand(false);
  const module = () => import('../checkpoint.ts');
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

/** `backfill` alone asks for one, as it has been typed since there was nothing else; what it takes stands in its help. */
function addBackfill(program: Command, means: Means, end: End): void {
  const backfill = program
    .command('backfill')
    .description('deliver the events of a past time, beside the running process or alone')
    .usage('[options] | list | cancel')
    .helpCommand(false);
  const start = backfill
    .command('start', { isDefault: true, hidden: true })
    .addOption(configOption())
    .requiredOption('--source <name>', 'whose events')
    .requiredOption('--from <time>', 'RFC 3339 time of the earliest')
    .option('--to <time>', 'RFC 3339 time before which they end; up to now if left out')
    .option('--restart', 'begin anew, also where the same was begun and not finished')
    .addOption(levelOption())
    .action(async (options) =>
      end(await (await import('../backfill.ts')).backfill(options, means)),
    );
  // A word that is no command would else be a superfluous argument of the default one, after options that it lacks.
  backfill.hook('preSubcommand', ({ args: [word = '-'], commands }, command) => {
    if (command !== start || word === start.name() || word.startsWith('-')) return;
    const known = commands.filter((one) => one !== start).map((one) => one.name());
    throw new UsageError(`unknown command ${cleanText(word, 80)} of backfill${hint(word, known)}`);
  });
  const module = () => import('../backfill-list.ts');
  backfill
    .command('list')
    .description('what was begun, how far it is, and how to go on')
    .addOption(configOption())
    .option('--json', 'one JSON object a line')
    .action(async (options) => end(await (await module()).list(options, means)));
  backfill
    .command('cancel')
    .description('forget one that is not finished; what it has held is still delivered')
    .argument('<id>', 'which, as list names it')
    .addOption(configOption())
    .action(async (id, options) => end(await (await module()).cancel(id, options, means)));
  backfill
    .configureHelp({ visibleOptions: () => start.createHelp().visibleOptions(start) })
    .addHelpText(
      'after',
      `
Where a process runs with this config it does it beside its live streams, and the command follows it;
else the command does it alone, and holds the state directory meanwhile. Ctrl-C stops it; the same
command line goes on from there, also after a crash.
Upstream documents no time filter: the list is walked, and other times are left out here. Every sink
gets the events, also those it has got before. They keep their uid; sinks that take each event once
(file, Kafka with exactly_once) take these once more. Records without a readable time are delivered.`,
    );
}

function addDeadLetters(program: Command, means: Means, end: End): void {
  const letters = program
    .command('dead-letters')
    .description('events that a sink refused for good: list, send again, or drop')
    .helpCommand(false);
  const module = () => import('../dead-letters.ts');
  const sinkOption = () => new Option('--sink <name>', 'only those of this sink');
  const uidOption = () =>
    new Option('--uid <uid>', 'only the one with this uid; may be given several times').argParser(
      (uid: string, before: readonly string[] | undefined) => [...(before ?? []), uid],
    );
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
    .addOption(uidOption())
    .action(async (options) => end(await (await module()).retry(options, means)));
  letters
    .command('drop')
    .description('delete them for good; asks on a terminal, elsewhere only with --yes')
    .addOption(configOption())
    .addOption(sinkOption())
    .addOption(uidOption())
    .option('--yes', 'without asking')
    .action(async (options) => end(await (await module()).drop(options, means)));
}

function addTap(program: Command, means: Means, end: End): void {
  program
    .command('tap')
    .description('show events as a sink would see them; writes nothing, moves nothing')
    .addOption(configOption())
    .option('--source <name>', 'only those of this source')
    .option('--sink <name>', 'as this sink gets them; left out: what any sink gets')
    .option('--format <type>', "json, cef or syslog; left out: that sink's, else json")
    .addOption(levelOption())
    .addHelpText(
      'after',
      `
Routes hold here too: what none lets through is not shown, and what they redact is taken out. Where several
lead to several sinks, an event is shown once, as the first route that lets it through leaves it.
While another process runs with this config, tap shows what that process fetches from now on. Else it
fetches by itself, from each stream's checkpoint on (from its start if it has none), into a directory
of its own that is removed at the end: the next run fetches the same events again. Ends with Ctrl-C.`,
    )
    .action(async (options) => end(await (await import('../tap.ts')).tap(options, means)));
}

function addTrying(program: Command, means: Means, end: End): void {
  program
    .command('sandbox')
    .description('serve both upstream APIs on loopback, with invented data that grows')
    .option('--port <n>', 'port on 127.0.0.1; any free one if left out')
    .option('--events <n>', 'audit events, and log records per list, at the start', '500')
    .option('--rate <n/s>', 'new audit events a second; logs grow three times as fast', '2/s')
    .option('--faults <file>', 'a script of what goes wrong, such as config/sandbox-faults.yaml')
    .action(async (options) => end(await (await import('../sandbox.ts')).sandbox(options, means)));
  program
    .command('quickstart', { hidden: true })
    .description('sandbox in, events on the screen and in ./out: what `npm start` runs')
    .addOption(levelOption())
    .action(async (options) =>
      end(await (await import('../quickstart.ts')).quickstart(options, means)),
    );
}

function addCompletion(program: Command, means: Means, end: End): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell) =>
      end(await (await import('../completion.ts')).completion(shell, program, means)),
    );
}
