// Runs the real program as a child process, with the Node that runs the tests: to its end, or in the
// background to be watched, signalled and killed. The child gets a clean environment: vitest's own
// variables change what libraries do (kafkajs retries differently under NODE_ENV=test).
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../../src/boot/program.ts';
import { endChild, isRunning, spawnChild } from './children.ts';
import { afterThisTest, patienceMs, waitUntil } from './temp.ts';

const mainFile = fileURLToPath(new URL('../../src/boot/sluice.js', import.meta.url));
/** Node's options, as in the first line of the script for users who start it by name. */
const flags =
  readFileSync(mainFile, 'utf8')
    .split('\n', 1)[0]
    ?.match(/--[a-z]\S+/g) ?? [];

export interface SluiceOptions {
  /** Default: the repository. */
  readonly cwd?: string;
  /** Added to PATH, HOME and TMPDIR, which are all that is handed down. */
  readonly env?: Readonly<Record<string, string>>;
  /** An executable in place of the checkout. Default: SLUICE_TEST_PROGRAM, else the checkout. */
  readonly program?: string;
  /** The input on stdin; undefined: none. */
  readonly stdin?: string;
  /** For `runSluice`: SIGKILL and reject after this. Default: `patienceMs`. */
  readonly timeoutMs?: number;
}

export interface SluiceResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
}

/** Runs `sluice` with these arguments to its end. An exit code other than 0 is a result, not an error. */
export async function runSluice(
  args: readonly string[],
  options: SluiceOptions = {},
): Promise<SluiceResult> {
  const sluice = startSluice(args, options);
  const { timeoutMs = patienceMs } = options;
  const what = () =>
    `sluice ${args.join(' ')} to end; its stderr: ${sluice.stderr.slice(-20).join('\n')}`;
  try {
    await waitUntil(() => !sluice.running, { what, timeoutMs });
  } finally {
    await sluice.kill('SIGKILL');
  }
  return await sluice.exited;
}

/**
 * Runs a command line to its end within this process, which costs next to nothing: for commands that inspect or repair,
 * if neither the process nor its terminal matters. Its only environment is `env`.
 */
export async function runHere(
  args: readonly string[],
  env: SluiceOptions['env'] = {},
): Promise<SluiceResult> {
  let [stdout, stderr] = ['', ''];
  const exitCode = await runProgram(args, {
    env,
    out: (line) => {
      stdout += `${line}\n`;
    },
    err: (line) => {
      stderr += `${line}\n`;
    },
    unread: new AbortController().signal,
    exit: (code) => {
      throw new Error(`sluice ${args.join(' ')} ended the process with ${code}`);
    },
  });
  return { stdout, stderr, exitCode };
}

/** `run --once` within this process, for tests of what comes before or after it. */
export async function runOnceHere(
  config: string,
  env?: SluiceOptions['env'],
): Promise<SluiceResult> {
  return await runHere(['run', '-c', config, '--once', '--log-level', 'error'], env);
}

/** A running program. It is killed when the test that started it ends, if it still runs. */
export interface RunningSluice {
  readonly pid: number;
  readonly running: boolean;
  /** Whole lines so far, without line ends. */
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
  /**
   * The first line, on stdout or stderr, already there or yet to come, that contains the text or
   * satisfies the predicate. Rejects when the program ends without it. Default: `patienceMs`.
   */
  waitForLine(requested: string | ((line: string) => boolean), timeoutMs?: number): Promise<string>;
  /** Sends the signal (default SIGTERM) and resolves when the program has ended. */
  kill(signal?: NodeJS.Signals): Promise<SluiceResult>;
  /** Resolves when it has ended and all its output was read. */
  readonly exited: Promise<SluiceResult>;
}

/** Starts `sluice` with these arguments and leaves it running. */
export function startSluice(args: readonly string[], options: SluiceOptions = {}): RunningSluice {
  const program = options.program ?? process.env.SLUICE_TEST_PROGRAM;
  const [file, before] =
    program === undefined ? [process.execPath, [...flags, mainFile]] : [program, []];
  const child = spawnChild(file, [...before, ...args], {
    cwd: options.cwd ?? fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...handedDown(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new Error('starting sluice: no pipes to it');
  stdin.on('error', () => undefined); // it may end without reading what it is given
  stdin.end(options.stdin ?? '');
  const sluice = new SluiceProcess(child, new Output(stdout), new Output(stderr));
  afterThisTest(() => sluice.kill('SIGKILL'));
  return sluice;
}

function handedDown(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'NODE_V8_COVERAGE', 'SLUICE_TRANSCODER'];
  return Object.fromEntries(names.flatMap((name) => pair(name, process.env[name])));
}

function pair(name: string, value: string | undefined): readonly (readonly [string, string])[] {
  return value === undefined ? [] : [[name, value]];
}

class Output {
  text = '';

  constructor(stream: Readable) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      this.text += text;
    });
  }

  get lines(): readonly string[] {
    return this.text.split('\n').slice(0, -1);
  }
}

class SluiceProcess implements RunningSluice {
  readonly exited: Promise<SluiceResult>;
  readonly #child: ChildProcess;
  readonly #stdout: Output;
  readonly #stderr: Output;

  constructor(child: ChildProcess, stdout: Output, stderr: Output) {
    this.#child = child;
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.exited = once(child, 'close').then(() => ({
      stdout: stdout.text,
      stderr: stderr.text,
      exitCode: child.exitCode,
    }));
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('sluice could not be started');
    return this.#child.pid;
  }

  get running(): boolean {
    return isRunning(this.#child);
  }

  get stdout(): readonly string[] {
    return this.#stdout.lines;
  }

  get stderr(): readonly string[] {
    return this.#stderr.lines;
  }

  async waitForLine(
    requested: string | ((line: string) => boolean),
    timeoutMs = patienceMs,
  ): Promise<string> {
    const matches =
      typeof requested === 'string' ? (line: string) => line.includes(requested) : requested;
    const said = () => `its stderr: ${this.stderr.slice(-20).join('\n')}`;
    const name = typeof requested === 'string' ? requested : 'a line';
    const look = async () => {
      if (!this.running) await this.exited;
      const line = [...this.stdout, ...this.stderr].find(matches);
      if (line === undefined && !this.running) {
        throw new Error(`sluice ended (${this.#child.exitCode}) before it said ${name}; ${said()}`);
      }
      return line;
    };
    return await waitUntil(look, { what: () => `sluice to say ${name}; ${said()}`, timeoutMs });
  }

  async kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<SluiceResult> {
    await endChild(this.#child, signal, 30_000);
    return await this.exited;
  }
}
