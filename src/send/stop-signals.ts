// The signals that end a sender.

/** `stop`: send no further batch; `kill`: abandon the batches in flight. */
export interface StopSignals {
  readonly stop: AbortSignal;
  readonly kill: AbortSignal;
}
