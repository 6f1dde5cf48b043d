// Callers that wait for a condition in the spool; each condition is checked again after every
// change.

interface Watcher {
  readonly look: () => void;
  readonly reject: (error: Error) => void;
}

/** The waiting callers. */
export class Watchers {
  readonly #watchers = new Set<Watcher>();
  #ended: Error | null = null;

  /** Resolves once the condition holds; rejects when the signal aborts, or on `end`. */
  until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#ended !== null) return Promise.reject(this.#ended);
    if (holds()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const finish = () => {
        this.#watchers.delete(watcher);
        signal.removeEventListener('abort', abort);
      };
      const watcher: Watcher = {
        look: () => {
          if (!holds()) return;
          finish();
          resolve();
        },
        reject: (error) => {
          finish();
          reject(error);
        },
      };
      const abort = () => watcher.reject(signal.reason);
      this.#watchers.add(watcher);
      signal.addEventListener('abort', abort);
    });
  }

  /** Something has changed. */
  wake(): void {
    for (const watcher of [...this.#watchers]) watcher.look();
  }

  /** Nothing will change any more. */
  end(error: Error): void {
    this.#ended = error;
    for (const watcher of [...this.#watchers]) watcher.reject(error);
  }
}
