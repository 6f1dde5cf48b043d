// What the tests of an archive's anchors share: a batch that is delivered, what stands beside checkpoints, and the verdict.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { type VerifyOptions, verifyArchive } from '../../src/archive/verify/verify.ts';
import type { Sink } from '../../src/contracts/sink.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { aSigner } from './a-writer.ts';

/** Sends a batch, which is delivered. */
export async function sent(sink: Sink, batch: Parameters<Sink['send']>[0]): Promise<void> {
  const answer = sink.send(batch, new AbortController().signal);
  sink.flush?.();
  expect(await answer).toEqual({ outcome: 'delivered' });
}

/** The files beside kept checkpoints that have this ending, oldest first. */
export function anchorsIn(location: string, ending: 'tsr' | 'cosig'): readonly string[] {
  return readdirSync(join(location, 'checkpoints'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(`.${ending}`))
    .map((name) => join(location, 'checkpoints', name))
    .sort();
}

/** The verdict on the archive of a directory. */
export async function verified(location: string, options: Partial<VerifyOptions> = {}) {
  const reader = new ArchiveReader(openDirectory(location));
  return await verifyArchive(reader, { trusted: [aSigner().verifier], ...options });
}
