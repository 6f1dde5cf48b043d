// Checkpoints (c2sp.org/tlog-checkpoint): a tree's size and root under the log's name, the text of
// a signed note.

import { hashBytes, type TreeHead } from './merkle.ts';

/** What a checkpoint says. */
export interface Checkpoint extends TreeHead {
  /** The log's name; that of the key that signs it. */
  readonly origin: string;
}

/** The text that is signed. */
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
