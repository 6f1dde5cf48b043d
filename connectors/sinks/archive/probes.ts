// The probes of `check --connect` around an archive before anything is written to it. Invariants:
// nothing is left behind; nothing in the archive is changed.

import { checkpointText, rootOf, type Signer, signNote } from '../../../src/archive/index.ts';
import type { Anchor, Published } from '../../../src/archive/write.ts';
import { ExportError } from '../../../src/contracts/index.ts';
import type { ObjectStore } from '../../../src/objects/index.ts';

/** No object has this name. */
const absentName = 'check';
/** No object has this tag. */
const noTag = '"00000000000000000000000000000000"';

/**
 * Whether objects may be written and, with `deletes`, deleted. The write has a condition that
 * cannot hold, so that a bucket with write permission writes nothing; a bucket that writes anyway
 * would not exclude a second writer.
 */
export async function probeBucket(
  store: ObjectStore,
  { deletes }: { readonly deletes: boolean },
): Promise<void> {
  if ((await store.replace(absentName, [Buffer.from('sluice\n')], noTag)) !== null) {
    await store.remove(absentName);
    throw new ExportError(
      'sink_refused',
      `${store.location} writes an object also where its condition does not hold (If-Match)`,
      {
        next: 'Use an object store that supports conditional writes (If-None-Match): without them two writers can corrupt the archive.',
      },
    );
  }
  if (deletes) await store.remove(absentName);
}

/**
 * Throws if one of them does not respond correctly about the newest checkpoint. Without a
 * checkpoint the probe uses the empty tree, with which every log begins.
 */
export async function probeAnchors(
  anchors: readonly Anchor[],
  { newest, signer, now }: { newest: Published | null; signer: Signer; now: number },
  signal: AbortSignal,
): Promise<void> {
  if (anchors.length === 0) return;
  const checkpoint = newest ?? (await emptyCheckpoint(signer, now));
  const asked = await Promise.all(anchors.map((anchor) => anchor.ask(checkpoint, signal)));
  const [first, ...others] = asked.flatMap(({ failures }) => failures);
  if (first === undefined) return;
  const texts = [first, ...others].map(({ message }) => message).join('; ');
  throw new ExportError(first.code, texts, { next: first.next, cause: first });
}

async function emptyCheckpoint(signer: Signer, at: number): Promise<Published> {
  const [size, root] = [0, rootOf([])];
  const text = checkpointText({ origin: signer.verifier.name, size, root });
  const note = Buffer.from(await signNote(text, [signer]));
  return { size, root: root.toString('hex'), at, note };
}
