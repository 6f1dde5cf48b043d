// How the program is asked to end. The first SIGTERM or SIGINT asks for an orderly end: polling stops, what is held
// goes out as far as sinks take it, the rest stays held. The second one means now, and ending at once is safe: nothing
// is acknowledged before it is delivered, and nothing is committed by halves.

/** Listening for signals. */
export interface Shutdown {
  /** Aborts at the first signal, with its name in the reason's message. */
  readonly stop: AbortSignal;
  /** Stops listening; signals end the process again as they do by default. */
  release(): void;
}

const signals = ['SIGTERM', 'SIGINT'] as const;

/**
 * A signal this soon after the first is the same one come twice: Ctrl-C reaches npm and us, and npm passes it on; a
 * service manager that ends a whole group does the same.
 */
const echoMs = 250;

/** Listens until released. `atOnce` is called at the second signal and must end the process. */
export function listenForShutdown(atOnce: () => void): Shutdown {
  const stop = new AbortController();
  let firstAt = 0;
  const heard = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted) {
      if (performance.now() - firstAt >= echoMs) atOnce();
      return;
    }
    firstAt = performance.now();
    stop.abort(new Error(`stopped by ${signal}`));
  };
  for (const signal of signals) process.on(signal, heard);
  return {
    stop: stop.signal,
    release: () => {
      for (const signal of signals) process.off(signal, heard);
    },
  };
}
