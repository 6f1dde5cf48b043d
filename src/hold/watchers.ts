// Who waits for something in the spool to become true: looked at again whenever something has
// changed there.

interface Watcher {
  readonly look: () => void;
  readonly reject: (error: Error) => void;
}

/** All that wait. */
export class Watchers {
  readonly #watchers = new Set<Watcher>();
  #ended: Error | null = null;

  /** Resolves once it holds; rejects when the signal aborts, or all are told to end. */
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
