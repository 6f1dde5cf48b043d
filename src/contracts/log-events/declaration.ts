// The form in which an event of the log is declared.

/** From least to most severe. */
export type Level = 'debug' | 'info' | 'warn' | 'error';

/** One event. */
export interface EventDeclaration {
  readonly level: Level;
  /** Fields that a line may have, those of its surroundings included. `…`: others too, as the error names them. */
  readonly fields: readonly string[];
  /** One or two sentences for an operator. */
  readonly meaning: string;
  /** The operator's next step. Left out: nothing, or what the line says in its field `next`. */
  readonly next?: string;
}

/** Events by their name. */
export type EventDeclarations = Readonly<Record<string, EventDeclaration>>;
