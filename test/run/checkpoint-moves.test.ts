// A rewind that is not possible names the reason of its kind of stream, and the next step.

import { expect, test } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import type { Store } from '../../src/hold/index.ts';
import { rewindStream } from '../../src/run/checkpoint-moves.ts';

/** A state with one checkpoint, of which nothing else is read. */
function stateWith(checkpoint: object | null): Store {
  return { streams: { recall: () => ({ checkpoint }) } } as unknown as Store;
}

test.each([
  [
    'a collection',
    { kind: 'snapshot', version: 1 },
    'rewinding web: a collection has no positions; each poll reads it whole',
    'No rewind is needed for its changes. For a new baseline: npx sluice checkpoint reset -c c.yaml --stream web; nothing was changed.',
  ],
  [
    'a webhooks source',
    { kind: 'push', version: 1 },
    'rewinding web: a webhooks source has no positions; it stores what upstream sends',
    'To receive events again, have upstream send them again; nothing was changed.',
  ],
  [
    'a checkpoint that cannot be read',
    { kind: 'list', version: 99 },
    'rewinding web: its checkpoint cannot be read',
    'To start again: npx sluice checkpoint reset -c c.yaml --stream web; nothing was changed.',
  ],
])('%s', (_, checkpoint, message, next) => {
  const config = { file: 'c.yaml' } as Config;
  const rewind = { what: 'rewind', to: 0, forget: false } as const;

  const moving = () => rewindStream(stateWith(checkpoint), { config, stream: 'web', rewind });

  expect(moving).toThrow(expect.objectContaining({ message, next }));
});
