// `sluice init`: writes a first config from a few answers, from a terminal or from flags. The config reader itself
// checks each answer at once, so that the file passes `check`. Invariant: no file is overwritten unless requested, and
// no secret is requested or written.

import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigError, parseConfig, sinks, whyUnreadable } from '../config/index.ts';
import type { SinkDefinition } from '../contracts/config.ts';
import { errorCodeOf, UsageError } from '../contracts/index.ts';
import { shellWord } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { type CommandDeps, defineCommand, type Given } from './shared/command.ts';
import { configText, type InitAnswers } from './shared/new-config.ts';
import { isAsked, onTerminal } from './shared/prompt.ts';
import { type Siem, siems } from './shared/siems.ts';
import { unknownText } from './shared/typed.ts';

/** The sinks as they are offered, the usual one first. */
const offered = [
  ...sinks.filter(({ type }) => type === 'file'),
  ...sinks.filter(({ type }) => type !== 'file'),
];
const [usualSink] = offered as [SinkDefinition];
const sinkTypes = offered.map(({ type }) => type);

const options = {
  config: {
    short: '-c',
    value: 'file',
    about: 'config file to write; $SLUICE_CONFIG names another',
    usual: ({ SLUICE_CONFIG: named }: CommandDeps['env']) => named || 'sluice.yaml',
  },
  unified: { value: 'url', about: 'base address of the unified API, for audit events' },
  services: { value: 'url', about: 'base address of the services API, for logs and firewall' },
  companies: { value: 'ids', about: 'company ids of the services API, separated by commas' },
  scope: { value: 'urn', about: 'scope of the services API' },
  logs: {
    value: 'path',
    about: 'path of a log list of the services API; {company_id} is replaced by each company',
  },
  secrets: {
    value: 'dir',
    about: 'directory of files with the credentials; else from the environment',
  },
  sink: { value: 'type', about: 'sink type', choices: sinkTypes },
  siem: {
    value: 'name',
    about: 'as --sink, for a SIEM; also print its setup steps and send a test event',
    choices: siems.map(({ name }) => name),
  },
  to: { value: 'address', about: 'file, address, brokers/topic or URL of the sink' },
  force: { about: 'overwrite an existing config' },
} as const;
/** The options of `init`. */
export type InitOptions = Given<typeof options>;

/** The source of answers. */
export interface Asker {
  /** True for a person, who can correct a wrong answer. */
  readonly again: boolean;
  /** The answer as typed; empty for the usual one, where there is one. */
  ask(question: string, usual: string | null): Promise<string>;
}

/** Collects the answers, writes the config, and prints the next steps. */
export const init = defineCommand({
  name: 'init',
  about: 'write a first config, with prompts; see its --help for flags',
  options,
  async run(given, deps) {
    const { config: file, force = false } = given;
    if (!force && existsSync(file)) throw exists(file);
    const answers =
      isAsked() && !saysAll(given)
        ? await onTerminal((ask) => answersTo(given, { again: true, ask }, deps))
        : await answersTo(given, unattended, deps);
    if (answers === null) {
      deps.err('nothing was written');
      return 1;
    }
    const text = configText(answers);
    const siem = siemNamed(given);
    const receiver = siem && join(dirname(file), siem.receiver.file);
    if (receiver !== null && !force && existsSync(receiver)) throw exists(receiver);
    write(file, text, force);
    if (siem === null || receiver === null) {
      for (const line of nextLines(file, text)) deps.out(line);
      return 0;
    }
    write(receiver, `${siem.receiver.lines(answers.to).join('\n')}\n`, force);
    for (const line of nextLines(file, text)) deps.out(line);
    deps.out(`wrote ${cleanText(receiver, 300)}: steps to set up there`);
    const { folder, page } = siem.content;
    deps.out(
      `rules for it, in a checkout of sluice: ${folder}; from here to the first alert: ${page}`,
    );
    return await tried(siem, { answers, file, text, deps });
  },
});

/** True if flags name the sources and the destination: no further question is shown. */
export function saysAll({ unified, services, companies, sink, siem }: InitOptions): boolean {
  if (sink === undefined && siem === undefined) return false;
  return services === undefined ? unified !== undefined : companies !== undefined;
}

/** Answers with the default if a flag is missing. */
const unattended: Asker = {
  again: false,
  async ask(_question, usual) {
    if (usual === null)
      throw new UsageError('is required, since there is no terminal to prompt on');
    return '';
  },
};

/** The questions, in this order; one that a flag answers is skipped. */
interface Question {
  readonly flag: keyof Omit<InitOptions, 'config' | 'force' | 'siem'>;
  readonly text: string;
  /** The value of an empty answer, also used if no person can answer. */
  readonly usual: string | null;
  /** False if earlier answers make the question needless. */
  readonly asked: (answers: InitAnswers) => boolean;
  readonly take: (answers: InitAnswers, text: string) => InitAnswers;
}

const none = (text: string) => (text === '' ? null : text);

const questions: readonly Question[] = [
  {
    flag: 'unified',
    text: 'Base address of the unified API (audit events), such as https://api.example.com/v1; empty: not read',
    usual: '',
    asked: () => true,
    take: (answers, text) => ({ ...answers, unified: none(text) }),
  },
  {
    flag: 'services',
    text: 'Base address of the services API (logs, firewall), such as https://svc.example.com; empty: not read',
    usual: '',
    asked: () => true,
    take: (answers, text) => ({ ...answers, services: none(text) }),
  },
  {
    flag: 'companies',
    text: 'Company ids of the services API, separated by commas',
    usual: null,
    asked: ({ services }) => services !== null,
    take: (answers, text) => ({ ...answers, companies: text.split(',').map((id) => id.trim()) }),
  },
  {
    flag: 'scope',
    text: 'Scope of the services API, the vendor’s URN',
    usual: 'urn:vendor:api:public',
    asked: ({ services }) => services !== null,
    take: (answers, text) => ({ ...answers, scope: text }),
  },
  {
    flag: 'logs',
    text: 'Path of a log list, such as /api/logs/v1/companies/{company_id}/events; empty: no logs',
    usual: '',
    asked: ({ services }) => services !== null,
    take: (answers, text) => ({ ...answers, logs: none(text) }),
  },
  {
    flag: 'secrets',
    text: 'Directory of files that hold the credentials, such as /run/secrets; empty: environment variables',
    usual: '',
    asked: () => true,
    take: (answers, text) => ({ ...answers, secrets: none(text) }),
  },
  {
    flag: 'sink',
    text: `Where events go: ${sinkTypes.join(', ')}`,
    usual: usualSink.type,
    asked: () => true,
    take: (answers, text) => ({ ...answers, ...usually(sinkNamed(text)) }),
  },
  {
    flag: 'to',
    text: '',
    usual: '',
    asked: ({ sink }) => sink.sample.to !== null,
    take: (answers, text) => (text === '' ? answers : { ...answers, to: text }),
  },
];

const nothing: InitAnswers = {
  unified: null,
  services: null,
  companies: [],
  scope: '',
  logs: null,
  secrets: null,
  ...usually(usualSink),
};

/** All answers, each right together with those before it. */
export async function answersTo(
  options: InitOptions,
  asker: Asker,
  deps: Pick<CommandDeps, 'env' | 'err'>,
): Promise<InitAnswers> {
  const siem = siemNamed(options);
  let answers = siem === null ? nothing : { ...nothing, ...usually(siem.sink) };
  for (const question of questions) {
    if (!question.asked(answers) || (siem !== null && question.flag === 'sink')) continue;
    answers = await settle(question, answers, { options, asker, deps });
  }
  return answers;
}

interface Asking {
  readonly options: InitOptions;
  readonly asker: Asker;
  readonly deps: Pick<CommandDeps, 'env' | 'err'>;
}

async function settle(
  question: Question,
  before: InitAnswers,
  asking: Asking,
): Promise<InitAnswers> {
  const { options, asker, deps } = asking;
  const { flag, usual } = question;
  for (;;) {
    try {
      const text = options[flag] ?? (await asker.ask(promptOf(question, before), usual));
      const answers = question.take(before, text.trim() || (usual ?? ''));
      const flaw = flawOf(flag, answers, deps.env);
      if (flaw === null) return answers;
      throw new UsageError(flaw);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      if (options[flag] !== undefined || !asker.again) {
        throw new UsageError(`--${flag}: ${error.message}`);
      }
      deps.err(`  ${error.message}`);
    }
  }
}

function promptOf({ flag, text, usual }: Question, { sink, to }: InitAnswers): string {
  const asked = flag === 'to' ? (sink.sample.to?.what ?? '') : text;
  const shown = flag === 'to' ? to : (usual ?? '');
  return `${asked}\n${shown === '' ? '' : `[${shown}] `}> `;
}

function usually(sink: SinkDefinition): Pick<InitAnswers, 'sink' | 'to'> {
  return { sink, to: sink.sample.to?.usual ?? '' };
}

function siemNamed({ siem, sink }: Pick<InitOptions, 'siem' | 'sink'>): Siem | null {
  if (siem === undefined) return null;
  if (sink !== undefined) throw new UsageError('--siem has its own sink: leave --sink out');
  return siems.find(({ name }) => name === siem) ?? null;
}

function sinkNamed(text: string): SinkDefinition {
  const found = offered.find(({ type }) => type === text);
  if (found !== undefined) return found;
  throw new UsageError(unknownText('sink', text, sinkTypes));
}

/** The reader's first error for the answers so far, with placeholders for the rest. */
function flawOf(
  flag: Question['flag'],
  answers: InitAnswers,
  env: CommandDeps['env'],
): string | null {
  const { unified, services, secrets, companies, scope } = answers;
  if (flag === 'services' && unified === null && services === null) {
    return 'one of the two APIs has to be read: give this, or --unified';
  }
  // A secret pasted here by mistake would get into the file as a name.
  if (flag === 'secrets' && secrets !== null && !/^\.{0,2}\/[\w./-]*$/.test(secrets)) {
    return 'expected a directory such as /run/secrets';
  }
  const text = configText({
    ...answers,
    unified: unified ?? (services === null ? 'https://api.example.com/v1' : null),
    companies: companies.length > 0 ? companies : ['c-1'],
    scope: scope || 'urn:vendor:api:public',
  });
  try {
    parseConfig(text, 'the new config', { env, placeholders: 'all' });
    return null;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.flaws[0]?.message ?? null;
  }
}

function write(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx', mode: 0o644 });
  } catch (error) {
    if (errorCodeOf(error) === 'EEXIST') throw exists(file);
    throw new UsageError(`${cleanText(file, 200)} cannot be written: ${whyUnreadable(error)}`);
  }
}

function exists(file: string): UsageError {
  return new UsageError(
    `${cleanText(file, 200)} exists and was not changed; --force overwrites it, -c names another file`,
  );
}

function nextLines(file: string, text: string): readonly string[] {
  const references = referencesIn(text);
  const named = (kind: string) =>
    references.flatMap(({ kind: of, name }) => (of === kind ? name : []));
  const files = named('file');
  const shown = cleanText(shellWord(file), 300);
  return [
    `wrote ${shown}; next:`,
    ...named('env').map((name) => `  export ${name}=…`),
    ...(files.length === 0 ? [] : [`  write the credentials into ${files.join(', ')}`]),
    `  npx sluice check -c ${shown} --connect   # tests the connections`,
    `  npx sluice run -c ${shown}`,
    `  npx sluice top -c ${shown}               # from another terminal`,
  ];
}

/** The secrets that a config or a part of one names outside comments, each once. */
function referencesIn(text: string): readonly { readonly kind: string; readonly name: string }[] {
  const written = text.replace(/(^|\s)#.*$/gm, '');
  const found = [...written.matchAll(/\$\{(env|file):([^}]+)\}/g)].map(
    ([whole, kind = '', name = '']) => [whole, { kind, name }] as const,
  );
  return [...new Map(found).values()];
}

/** Sends the SIEM a test event, once all that its sink needs is at hand: 3 where it has none. */
async function tried(
  { name, sink }: Siem,
  written: {
    readonly answers: InitAnswers;
    readonly file: string;
    readonly text: string;
    readonly deps: CommandDeps;
  },
): Promise<0 | 3> {
  const { answers, file, text, deps } = written;
  const later = `npx sluice check -c ${cleanText(shellWord(file), 300)} --setup --send-test --sink ${name}`;
  const needed = referencesIn(sink.sample.lines(answers.to).join('\n'));
  const missing = needed
    .filter(({ kind, name: of }) => (kind === 'env' ? !deps.env[of] : !existsSync(of)))
    .map(({ name: of }) => of);
  if (missing.length > 0) {
    deps.out(
      `no test event was sent. Missing: ${cleanText(missing.join(', '), 300)}. Set it, then run:`,
    );
    deps.out(`  ${later}`);
    return 3;
  }
  const { askSink } = await import('./check.ts');
  const config = parseConfig(text, file, { env: deps.env, placeholders: 'unset' });
  const isWell = await askSink(config, name, deps);
  if (!isWell) deps.out(`after the correction: ${later}`);
  return isWell ? 0 : 3;
}
