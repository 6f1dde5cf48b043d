// Checkpoints (c2sp.org/tlog-checkpoint): a tree's size and root under the log's name, the text of
// a signed note.

import { hashBytes, type TreeHead } from './merkle.ts';

/** The content of a checkpoint. */
export interface Checkpoint extends TreeHead {
  /** The log's name, which is the name of its signing key. */
  readonly origin: string;
}

/** The signed text. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
}

/** Parses a checkpoint's text; lines beyond the third are extensions. Throws a SyntaxError. */
export function parseCheckpoint(text: string): Checkpoint {
  const [origin = '', size = '', encoded = ''] = text.split('\n');
  const root = Buffer.from(encoded, 'base64');
  const isNumber = /^(0|[1-9]\d*)$/.test(size) && Number.isSafeInteger(Number(size));
  if (
    origin === '' ||
    !isNumber ||
    root.length !== hashBytes ||
    root.toString('base64') !== encoded
  ) {
    throw new SyntaxError('not a checkpoint: expected a name, a size and a root');
  }
  return { origin, size: Number(size), root };
}
