// `sluice archive prune`: requests the deletion of bodies older than a time from the process that writes the archive.
// The writer deletes them with its next checkpoint. The tree stays, and an entry lists the deleted bodies: only a
// process that can sign the deletion deletes.

import { dayOfCut, ProvenCuts, readSpanOf } from '../../archive/audit.ts';
import { cutsPrefix, lockText, type ObjectLock } from '../../archive/index.ts';
import { encodeWish, isHeld, prunePath, pruneWish, segmentsBefore } from '../../archive/operate.ts';
import { counted, sizeText } from '../../terminal/index.ts';
import { defineCommand } from '../shared/command.ts';
import { isAgreed } from '../shared/prompt.ts';
import { timeTyped } from '../shared/typed.ts';
import { holdsAt, locationArgument, provenArchive, signatureOf, signWithOption } from './given.ts';

/** Requests the deletion of bodies. */
export const prune = defineCommand({
  name: 'prune',
  about: 'delete bodies and lake events of pages read before a time; their proofs stay',
  arguments: { location: locationArgument },
  options: {
    before: {
      value: 'time',
      about: 'delete whole segments older than this time (RFC 3339)',
      needed: true,
    },
    signWith: signWithOption,
    yes: { about: 'do not prompt' },
  },
  more: `Prompts on a terminal, otherwise requires --yes. Segments under a hold stay. The process that writes the archive
deletes the others with its next checkpoint, or at its next start.`,
  async run({ location, before, signWith, yes }, deps) {
    const { out, env } = deps;
    const until = timeTyped('before', before);
    const reader = await provenArchive(location, env);
    const { store } = reader;
    const holds = await holdsAt(store);
    const gone = { segments: 0, pages: 0, bytes: 0 };
    let held = 0;
    const locks: ObjectLock[] = [];
    for await (const segment of segmentsBefore(until, reader)) {
      if (holds.some((hold) => isHeld(hold, segment))) {
        held += 1;
        continue;
      }
      const { lock } = (await store.facts(segment.object)) ?? {};
      if (lock !== undefined) {
        locks.push(lock);
        continue;
      }
      gone.segments += 1;
      gone.pages += segment.pages;
      gone.bytes += segment.bytes;
    }
    let cuts = 0;
    const known = new ProvenCuts();
    for await (const { name } of store.list(cutsPrefix)) {
      if (dayOfCut(name) > until) break;
      const cut = await known.named(name, reader);
      const span = cut && (await readSpanOf(cut, reader));
      if (span === null || span.last >= until || holds.some((hold) => isHeld(hold, span))) continue;
      cuts += 1;
      gone.bytes += cut?.objects.reduce((sum, { bytes }) => sum + bytes, 0) ?? 0;
    }
    const kept = [
      ...(held === 0 ? [] : [`${counted(held, 'segment')} stay under a hold`]),
      ...(locks.length === 0
        ? []
        : [`${counted(locks.length, 'segment')} under a lock: ${lockedText(locks)}`]),
    ];
    const lake = cuts === 0 ? '' : ` and ${counted(cuts, 'cut')} of the lake`;
    const going = `${counted(gone.segments, 'segment')} (${counted(gone.pages, 'page')}, ${sizeText(gone.bytes)})${lake} would be deleted`;
    const reported = [going, ...kept].join('; ');
    if (gone.segments + cuts === 0) {
      out(reported);
      return 0;
    }
    if (!yes && !(await isAgreed(reported, 'delete them?', deps))) {
      out(`${reported}; nothing is deleted${process.stdin.isTTY ? '' : ': --yes deletes them'}`);
      return 1;
    }
    const now = Date.now();
    const wish = pruneWish(until, now);
    const signed = await signatureOf(store, signWith, { kind: 'prune', wish });
    await store.put(prunePath, [encodeWish(until, now, signed)]);
    out(`${reported}: requested; they are deleted with the next checkpoint`);
    return 0;
  },
});

/** The reason for the longest lock. */
function lockedText(locks: readonly ObjectLock[]): string {
  const longest = locks.toSorted(
    (a, b) => Number(b.hold ?? false) - Number(a.hold ?? false) || b.until - a.until,
  )[0];
  return longest === undefined ? '' : lockText(longest);
}
