// Rotates an archive's signing key: an entry names the new key, and the checkpoint over it is signed by both, so trust
// in the old key extends to the new one. Invariant: a repeated rotation completes an interrupted one and adds no second
// entry.

import { ExportError } from '../contracts/index.ts';
import { timeText } from '../tools/index.ts';
import { parseMark } from './heads.ts';
import { checkpointPath } from './layout.ts';
import { keyOfLog } from './log-name.ts';
import type { Signer } from './note.ts';
import { type ArchiveLogSettings, openArchiveLog } from './recovery.ts';
import { readSmall } from './small-objects.ts';

/**
 * Makes `next` the signing key; returns the log's size. Null: nothing is signed yet, and the new key may sign from the start.
 * No other process may write to the archive meanwhile.
 */
export async function rotateKey(
  settings: ArchiveLogSettings,
  next: Signer,
): Promise<number | null> {
  const { store, signer, clock, mark } = settings;
  const [name, nextName] = [signer.verifier.name, next.verifier.name];
  if (name !== nextName) {
    throw refusal(`the archive is ${name}, and the new key is one of ${nextName}`, {
      next: `Make one of the same name: npx sluice archive keys new FILE --origin ${name}`,
    });
  }
  // If the state has signed here, opening the log signs its tree again.
  const known = mark === null ? null : parseMark(mark);
  const isKnown = known?.location === store.location;
  if (!isKnown && (await readSmall(store, checkpointPath)) === null) return null;
  const log = await openArchiveLog({ ...settings, next });
  const { vkey } = keyOfLog(next.verifier, log.deps.origin);
  if (log.heads.key !== vkey) {
    const now = clock.now();
    log.enterCheckpoint();
    log.append({ t: 'key', at: timeText(now), vkey });
    await log.publish([], now);
  }
  await log.deps.claim.renew(true);
  return log.size;

  function refusal(why: string, parts: { readonly next: string }): ExportError {
    return new ExportError('sink_refused', `rotating the key of ${store.location}: ${why}`, parts);
  }
}
