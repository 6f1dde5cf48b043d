// How the program is asked to end. The first SIGTERM or SIGINT asks for an orderly end: polling
// stops, what is held goes out as far as sinks take it, the rest stays held. The second one means
// now, and ending at once is safe: nothing is acknowledged before it is delivered, and nothing is
// committed by halves. Where npm started the program, that npm is gone counts as a signal: the
// shell that npm puts between may have taken the signal and kept it to itself, and nobody would
// know of a program that goes on and holds the state directory.

/** Listening for signals. */
export interface Shutdown {
  /** Aborts at the first signal, with what it was in the reason's message. */
  readonly stop: AbortSignal;
  /** Stops listening; signals end the process again as they do by default. */
  release(): void;
}

const signals = ['SIGTERM', 'SIGINT'] as const;

/**
 * A signal this soon after the first is the same one come twice: Ctrl-C reaches npm and us, and npm
 * passes it on; a service manager that ends a whole group does the same.
 */
const echoMs = 250;
/** How often is looked whether npm is still there. */
const lookEveryMs = 300;
const parentAtStart = process.ppid;

/** Listens until released. `atOnce` is called at the second signal and must end the process. */
export function listenForShutdown(atOnce: () => void): Shutdown {
  const stop = new AbortController();
  let firstAt = 0;
  const begin = (why: string) => {
    firstAt = performance.now();
    stop.abort(new Error(why));
  };
  const received = (signal: NodeJS.Signals) => {
    if (!stop.signal.aborted) begin(`stopped by ${signal}`);
    else if (performance.now() - firstAt >= echoMs) atOnce();
  };
  const forget = whenNpmIsGone(() => {
    if (!stop.signal.aborted) begin('stopped, since npm, which started this, is gone');
  });
  for (const signal of signals) process.on(signal, received);
  return {
    stop: stop.signal,
    release: () => {
      forget();
      for (const signal of signals) process.off(signal, received);
    },
  };
}

/** A process whose parent has ended gets another one. Returns what ends the looking. */
function whenNpmIsGone(gone: () => void): () => void {
  if (process.env.npm_command === undefined) return () => undefined;
  const timer = setInterval(() => {
    if (process.ppid === parentAtStart) return;
    clearInterval(timer);
    gone();
  }, lookEveryMs).unref();
  return () => clearInterval(timer);
}
