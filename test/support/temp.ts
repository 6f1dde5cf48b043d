// The small things that every test needs: a directory that goes away, a free port, and waiting for a
// condition instead of sleeping. A wait that ends in vain says what it waited for, so that a
// failure on another machine can be understood from its message.
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { runDir } from './once-per-run.ts';

/**
 * An empty directory. Removed when the calling test ends; created outside a test (for example in `beforeAll`) it stays
 * until the run ends.
 */
export function tempDir(prefix = 'test-'): string {
  const dir = mkdtempSync(join(runDir(), prefix));
  afterThisTest(() => rmSync(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
}

/**
 * Calls `end` when the running test has finished, whether it passed or not. True if there was a test
 * to attach to; in a hook or outside vitest there is none, and the caller ends things itself.
 */
export function afterThisTest(end: () => unknown): boolean {
  try {
    onTestFinished(async () => {
      await end();
    });
    return true;
  } catch {
    return false; // vitest refuses outside a test
  }
}

/**
 * How long something is awaited that should come at once, in milliseconds: a bound on a test that hangs and no measure of
 * speed, so that a machine with many busy processes passes as well.
 */
export const patienceMs = 300_000;

export interface WaitOptions {
  /** What is awaited, as the end of "waited … for"; a function may add what is known by then. */
  readonly what: string | (() => string);
  /** Default: `patienceMs`. */
  readonly timeoutMs?: number;
  /** How long to wait between two looks. Default: 20 ms, and longer after a look that took long. */
  readonly everyMs?: number;
}

/**
 * Looks until `condition` gives something other than false, null or undefined, and resolves to that.
 * What the condition throws is not caught. Rejects after `timeoutMs`, naming `what`.
 */
export async function waitUntil<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions,
): Promise<Exclude<T, false | null | undefined>> {
  const { what, timeoutMs = patienceMs, everyMs } = options;
  const end = performance.now() + timeoutMs;
  for (;;) {
    const begun = performance.now();
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) {
      return value as Exclude<T, false | null | undefined>; // TypeScript cannot narrow a generic
    }
    const now = performance.now();
    if (now >= end) break;
    await delay(everyMs ?? pauseMs(now - begun));
  }
  throw new Error(`waited ${timeoutMs} ms for ${typeof what === 'string' ? what : what()}`);
}

/** A look that reads files or runs a command leaves most of the time to the programs that it waits for. */
function pauseMs(lookMs: number): number {
  return Math.min(500, Math.max(20, 4 * lookMs));
}

/**
 * A loopback port that nothing listens on, TCP or UDP. It lies below the system's range of ephemeral ports (Linux:
 * 32768 and up), and no process of this test run gets it again. So no other socket uses it before its server is up, or
 * while that restarts.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    if ((await isFree(port)) && reserved(port)) return port;
  }
}

/** False if this run has given the port to someone: a file of its number is there. */
function reserved(port: number): boolean {
  const dir = join(runDir(), 'ports');
  mkdirSync(dir, { recursive: true });
  try {
    closeSync(openSync(join(dir, String(port)), 'wx'));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false; // taken: the caller tries another
  } finally {
    server.close();
  }
}

/** The requested number of distinct free ports. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}
