// Runs one command of `${exec:…}` and returns its standard output. Invariants: no shell; the command and its children end
// after 10 s, after 64 KiB, and with sluice; its standard error is discarded, because a secret may be in it; errors
// contain neither arguments nor output.

import { type ChildProcess, spawn } from 'node:child_process';
import { ExportError, errorCodeOf } from '../contracts/index.ts';

const timeoutMs = 10_000;
const outputBytesMax = 64 * 1024;

const running = new Set<ChildProcess>();

/** The output without the newline at its end. Rejects with an ExportError that names the command by `name`. */
export async function runCommand(
  [program, ...args]: readonly [string, ...string[]],
  {
    env,
    name,
  }: { readonly env: Readonly<Record<string, string | undefined>>; readonly name: string },
): Promise<string> {
  const failed = (why: string, next: string) => {
    return new ExportError('config_invalid', `${name}: ${why}`, { next });
  };
  const ended = Promise.withResolvers<ExportError | null>();
  const byHand =
    'Run the command as the user of sluice to see its message: sluice shows no output of the command, because a secret may be there.';
  let child: ChildProcess;
  try {
    // A process group: the children of the command end with it.
    child = spawn(program, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...env },
    });
  } catch {
    throw failed('it cannot be started', 'Remove control characters from the command.');
  }
  if (running.size === 0) watchEnd();
  running.add(child);
  const stop = (why: string) => {
    endGroup(child);
    ended.resolve(failed(why, byHand));
  };
  const timer = setTimeout(stop, timeoutMs, `it was still running after ${timeoutMs / 1_000} s`);
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout?.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > outputBytesMax) stop('its output is larger than 64 KiB');
    else chunks.push(chunk);
  });
  child.stdout?.on('error', () => undefined);
  child.on('error', (error) => {
    ended.resolve(failed(`it cannot be started: ${whyNotStarted(error)}`, nextNotStarted(error)));
  });
  child.on('close', (code, signal) => {
    const why = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
    ended.resolve(code === 0 ? null : failed(why, byHand));
  });
  try {
    const failure = await ended.promise;
    if (failure !== null) throw failure;
    const text = textOf(Buffer.concat(chunks));
    if (text === null) throw failed('its output is not UTF-8 text', byHand);
    if (text === '') throw failed('it wrote nothing to standard output', byHand);
    return text;
  } finally {
    clearTimeout(timer);
    running.delete(child);
    if (running.size === 0) unwatchEnd();
  }
}

function textOf(output: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(output).replace(/\r?\n$/, '');
  } catch {
    return null;
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function watchEnd(): void {
  process.on('exit', endAll);
  for (const signal of signals) process.on(signal, endBy);
}

function unwatchEnd(): void {
  process.off('exit', endAll);
  for (const signal of signals) process.off(signal, endBy);
}

/** While a config is read, no other part handles signals: without this one, Node would end and the commands would not. */
function endBy(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return;
  endAll();
  unwatchEnd();
  process.kill(process.pid, signal);
}

function endAll(): void {
  for (const child of running) endGroup(child);
}

function endGroup(child: ChildProcess): void {
  child.stdout?.destroy();
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The whole group has already ended.
  }
}

function whyNotStarted(error: unknown): string {
  const code = errorCodeOf(error);
  if (code === 'ENOENT') return 'there is no such program';
  if (code === 'EACCES') return 'the user of sluice may not execute it';
  return code || 'the system refuses';
}

function nextNotStarted(error: unknown): string {
  return errorCodeOf(error) === 'EACCES'
    ? 'Make the program executable for the user that runs sluice.'
    : 'Install the program, or write its full path.';
}
