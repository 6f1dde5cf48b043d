// How long to wait before something is asked again. What must stay true: it is decided once, by whoever knows why, and
// handed on as it is, through every layer, to whoever waits.

/** A wait that was decided. Where there is none, whoever waits lets it grow from failure to failure. */
export interface Wait {
  /** Milliseconds from the answer that it came with. */
  readonly ms: number;
  /** Lets one request through, for an operator who asks for it now. Left out where upstream asked for the wait. */
  readonly cut?: () => void;
  /** Resolves where waiting on is pointless: what was refused is mended. Rejects with the signal's reason. */
  readonly mended?: (signal: AbortSignal) => Promise<void>;
}
