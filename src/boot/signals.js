// Signals before the program runs. Plain JavaScript, like sluice.js.

import { isatty } from 'node:tty';

/**
 * By default Node starts a debugger on SIGUSR1, to which any process of the user could attach, and
 * ends on SIGUSR2. sluice ignores both.
 */
export function ignoreUserSignals() {
  for (const name of ['SIGUSR1', 'SIGUSR2']) process.on(name, () => undefined);
}

/**
 * `run` has its own handlers once it runs (src/run/shutdown.ts). A signal before or after that ends
 * the process as without a handler, and writes a line with the reason. SIGHUP requests a reload,
 * and a run that has not begun reads its config anyway; a terminal that closes sends SIGHUP too.
 */
export function endEarly() {
  if (process.argv[2] !== 'run') return;
  const isService = !process.argv.includes('--once') && !isatty(2);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    const early = () => {
      if (process.listenerCount(signal) > 1 || (signal === 'SIGHUP' && isService)) return;
      process.stderr.write(`sluice ends: stopped by ${signal}; no event is lost\n`);
      process.off(signal, early);
      process.kill(process.pid, signal);
    };
    process.on(signal, early);
  }
}
