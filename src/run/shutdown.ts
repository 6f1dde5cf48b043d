// How the program is stopped. The first SIGTERM or SIGINT requests an orderly end: polling stops, sinks that accept
// events get the stored ones, the rest stays in the spool. The second one ends the process at once, which is safe: no
// event counts as delivered before its acknowledgement, and no commit is partial. If npm started the program, the end
// of that npm counts as a signal: the shell between the two may keep the signal to itself, and the program would hold
// the state directory unnoticed.

/** Listening for signals. */
export interface Shutdown {
  /** Aborts at the first signal, whose name is in the reason's message. */
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

/** A process whose parent has ended gets another parent. Returns a function that stops the check. */
function whenNpmIsGone(gone: () => void): () => void {
  if (process.env.npm_command === undefined) return () => undefined;
  const timer = setInterval(() => {
    if (process.ppid === parentAtStart) return;
    clearInterval(timer);
    gone();
  }, lookEveryMs).unref();
  return () => clearInterval(timer);
}
