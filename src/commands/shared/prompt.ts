// Questions to a person at the terminal. They are written to stderr; stdout is for requested output.

import { createInterface } from 'node:readline/promises';

/** True if a person can answer. */
export function isAsked(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Talks with them; null where they go away in the middle. */
export async function onTerminal<T>(
  talk: (ask: (question: string) => Promise<string>) => Promise<T>,
): Promise<T | null> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const gone = new AbortController();
  terminal.on('SIGINT', () => terminal.close());
  terminal.on('close', () => gone.abort(new Error('the terminal was closed')));
  try {
    return await talk((question) => terminal.question(question, { signal: gone.signal }));
  } catch (error) {
    if (gone.signal.aborted) return null;
    throw error;
  } finally {
    terminal.close();
  }
}

/** Requests confirmation of the action; without a terminal the answer is no. */
export async function isAgreed(
  reported: string,
  question: string,
  { err }: { readonly err: (text: string) => void },
): Promise<boolean> {
  if (!isAsked()) return false;
  err(reported);
  const answer = await onTerminal((ask) => ask(`${question} [y/N] `));
  return /^y(es)?$/i.test(answer ?? '');
}
