// How a sender is ended.

/** The two ways to end a sender: take no further batch, and give up on what is under way. */
export interface StopSignals {
  readonly stop: AbortSignal;
  readonly kill: AbortSignal;
}
