// The type of a log event's declaration.

/** From least to most severe. */
export type Level = 'debug' | 'info' | 'warn' | 'error';

/** One event. */
export interface EventDeclaration {
  readonly level: Level;
  /** Allowed fields of a line, including those of its logger. `…`: the error's own details also. */
  readonly fields: readonly string[];
  /** One or two sentences for an operator. */
  readonly meaning: string;
  /** The operator's next step. Default: none, or the line's field `next`. */
  readonly next?: string;
}

/** Events by their name. */
export type EventDeclarations = Readonly<Record<string, EventDeclaration>>;
