// Signs with a key that sluice never has: a command signs, for example through an HSM or a KMS. It receives the bytes
// on stdin and returns the Ed25519 signature on stdout, as 64 bytes or in base64. Invariants: a signature is passed on
// only if the public key verifies it; the command runs without a shell and for a bounded time; error messages of the
// command contain none of its arguments.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { ExportError, errorCodeOf, type Secret } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';
import type { Signer, Verifier } from './note.ts';

/** A configured signing command. */
export interface SigningCommand {
  /** The program and its arguments. */
  readonly run: readonly Secret[];
  /** Milliseconds. */
  readonly timeout: number;
}

const signatureBytes = 64;
/** More output on stdout is no signature; of stderr the end is kept. */
const outputMax = 4_096;
const shownMax = 300;
/** Shorter arguments are no secrets. */
const hiddenLengthMin = 4;
const doing = 'signing with signing_key_command';
const stays = 'Nothing is lost: events stay held until it signs.';

/** The signer with the command's key; `verifier`: its public half. */
export function commandSigner({ run, timeout }: SigningCommand, verifier: Verifier): Signer {
  return {
    verifier,
    async sign(text) {
      const signature = signatureIn(await outputOf(run, { text, timeout }));
      if (verifier.check(text, signature)) return signature;
      throw new ExportError(
        'sink_refused',
        `${doing}: the signature is not one of the public key ${verifier.vkey}`,
        { next: `Name the public key of the key that the command signs with. ${stays}` },
      );
    },
  };
}

/** The command's output on stdout. */
async function outputOf(
  run: readonly Secret[],
  { text, timeout }: { readonly text: Uint8Array; readonly timeout: number },
): Promise<Buffer> {
  const [program = '', ...args] = run.map((part) => part.reveal());
  // A process group: the command's children end with it, and a signal to sluice does not interrupt a signing.
  const child = spawn(program, args, { detached: true, stdio: 'pipe' });
  const ended = Promise.withResolvers<string | null>();
  child.on('error', (error) => ended.reject(notStarted(error)));
  child.on('close', (code, signal) => {
    ended.resolve(code === 0 ? null : signal === null ? `exit code ${code}` : `ended by ${signal}`);
  });
  const timer = setTimeout(() => {
    endGroup(child);
    ended.resolve(`it ran longer than ${timeout / 1_000}s`);
  }, timeout);
  const out = kept(child.stdout, 'first');
  const err = kept(child.stderr, 'last');
  // The command may exit before it has read its input.
  child.stdin.on('error', () => undefined);
  child.stdin.end(text);
  try {
    const failure = await ended.promise;
    if (failure === null) return out();
    throw failed(failure, { stderr: err().toString('utf8'), run });
  } finally {
    clearTimeout(timer);
  }
}

/** Ends the command and its children. */
function endGroup({ pid }: ChildProcessWithoutNullStreams): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The whole group has already exited.
  }
}

/** Keeps the first or the last bytes of a stream. */
function kept(stream: NodeJS.ReadableStream, which: 'first' | 'last'): () => Buffer {
  let bytes = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([bytes, chunk]);
    bytes = which === 'first' ? all.subarray(0, outputMax) : all.subarray(-outputMax);
  });
  stream.on('error', () => undefined);
  return () => bytes;
}

function signatureIn(output: Buffer): Buffer {
  if (output.length === signatureBytes) return output;
  const text = output.toString('latin1').replaceAll(/\s/g, '');
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === signatureBytes && bytes.toString('base64') === text) return bytes;
  throw new ExportError(
    'sink_refused',
    `${doing}: its output is no signature: ${output.length} bytes, and neither 64 nor 64 in base64`,
    { next: `Have it write nothing but the signature to stdout. ${stays}` },
  );
}

function notStarted(error: Error): ExportError {
  return new ExportError('sink_refused', `${doing}: it cannot be started: ${errorCodeOf(error)}`, {
    next: `Name a program that the user of sluice may run, with its path. ${stays}`,
    cause: error,
  });
}

/** The failure is temporary: the command's service may be unavailable. */
function failed(
  what: string,
  { stderr, run }: { readonly stderr: string; readonly run: readonly Secret[] },
): ExportError {
  const said = cleanText(hidden(stderr.trim().split('\n').at(-1) ?? '', run), shownMax);
  const why = said === '' ? what : `${what}: ${said}`;
  return new ExportError('sink_unreachable', `${doing}: ${why}`, {
    next: `Look why the command fails; it is run again by itself. ${stays}`,
  });
}

/** Removes the arguments and their values from a text, because they may contain a PIN. */
function hidden(text: string, run: readonly Secret[]): string {
  const args = run.slice(1).map((part) => part.reveal());
  const values = args.flatMap((arg) => [arg, arg.slice(arg.indexOf('=') + 1)]);
  return values
    .filter(({ length }) => length >= hiddenLengthMin)
    .reduce((shown, value) => shown.replaceAll(value, '[hidden]'), text);
}
