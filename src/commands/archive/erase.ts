// `sluice archive erase`: requests the erasure of one record from the process that writes the archive. As with `prune`,
// only a process that can sign the deletion deletes. Holds and locks that keep the record are found here, before the
// request is written.

import {
  type Copy,
  copiesOf,
  isLakeBehind,
  type LakeCopy,
  lakeCopiesOf,
  ProvenCuts,
  recordOf,
} from '../../archive/audit.ts';
import type { ArchiveReader } from '../../archive/index.ts';
import { encodeRequest, isHeld, requestPath } from '../../archive/operate.ts';
import { ExportError, UsageError } from '../../contracts/index.ts';
import { lockText } from '../../objects/index.ts';
import { counted } from '../../terminal/index.ts';
import { timeText } from '../../tools/index.ts';
import { defineCommand } from '../shared/command.ts';
import { isAgreed } from '../shared/prompt.ts';
import { holdsAt, locationArgument, provenArchive, signatureOf, signWithOption } from './given.ts';

const reasonMax = 1_000;

/** Erases one record. */
export const erase = defineCommand({
  name: 'erase',
  about: 'erase one record; its hash and the reason stay, and everything else is proven as before',
  arguments: { location: locationArgument },
  options: {
    uid: { value: 'uid', about: 'uid of the event of the record', needed: true },
    reason: { value: 'text', about: 'reason; stays in the archive for good', needed: true },
    signWith: signWithOption,
    yes: { about: 'do not prompt' },
  },
  more: `Prompts on a terminal, otherwise requires --yes. The process that writes the archive rewrites every page with this
record, byte for byte, and every object of the lake with its event. It does so with its next checkpoint, or at its
next start. The command is refused, with the date, while a hold or a lock keeps one of these. Events at other sinks
are not changed.`,
  async run({ location, uid, reason, signWith, yes }, deps) {
    const { out, err, env } = deps;
    if (!/^[0-9a-f]{64}$/.test(uid)) {
      throw new UsageError('--uid: expected 64 hexadecimal characters in lower case');
    }
    if (reason.trim() === '' || reason.length > reasonMax) {
      throw new UsageError(`--reason: expected some text of at most ${reasonMax} characters`);
    }
    const reader = await provenArchive(location, env);
    const found = await readably(location, () => recordOf(reader, uid));
    if (found === null) {
      err(`no record of the archive has the uid ${uid}`);
      return 1;
    }
    const { sha256, bytes, index, at } = found;
    const copies =
      bytes === null ? [] : await readably(location, () => copiesOf(reader, { bytes, sha256 }));
    const uids = [...new Set([uid, ...copies.flatMap((copy) => copy.uids)])];
    const pages = [index, ...copies.map((copy) => copy.index)];
    const lake = await readably(location, () =>
      lakeCopiesOf(reader, new ProvenCuts(), { pages, uids }),
    );
    if (bytes === null && lake.length === 0) {
      out(`the record is erased already: \`npx sluice archive verify\` reports when and why`);
      return 0;
    }
    await refuseKept(reader, copies, lake);
    const made = copies.filter((copy) => copy.uids.length > 0).map(({ entry }) => entry.place);
    if (await readably(location, () => isLakeBehind(reader, made))) {
      throw new ExportError(
        'sink_refused',
        `erasing from ${reader.store.location}: its lake has not been written as far as the record yet, and would get it later`,
        {
          next: 'Repeat the command after that: as often as `lake.every` says, and when sluice stops.',
        },
      );
    }
    const segments = new Set(copies.map(({ body }) => body.segment)).size;
    const objects =
      lake.length === 0 ? '' : `, and from ${counted(lake.length, 'object')} of the lake`;
    const reported = `the record of SHA-256 ${sha256} would go from ${counted(copies.length, 'page')} in ${counted(segments, 'segment')}${objects}`;
    if (!yes && !(await isAgreed(reported, 'erase it for good?', deps))) {
      out(`${reported}; nothing goes${process.stdin.isTTY ? '' : ': --yes erases it'}`);
      return 1;
    }
    // The process that writes need not search all of a large archive.
    const times = [at, ...copies.map(({ entry }) => entry.fetched_at)].map((time) =>
      Date.parse(time),
    );
    const span = { from: timeText(Math.min(...times)), to: timeText(Math.max(...times) + 1) };
    const wish = { uid, reason, asked_at: timeText(Date.now()), ...span };
    const signed = await signatureOf(reader.store, signWith, { kind: 'erase', wish });
    const request = { ...wish, ...(signed !== undefined && { signed }) };
    await reader.store.put(requestPath(uid), [encodeRequest(request)]);
    out(`${reported}: requested; it is erased with the next checkpoint`);
    return 0;
  },
});

/** Throws where something keeps one of the pages, or of the lake's objects. */
async function refuseKept(
  { store }: ArchiveReader,
  copies: readonly Copy[],
  lake: readonly LakeCopy[],
): Promise<void> {
  const refuse = (what: string, next: string) => {
    throw new ExportError('sink_refused', `erasing from ${store.location}: ${what}`, { next });
  };
  const holds = await holdsAt(store);
  const kept = [
    ...copies.map(({ entry, body }) => ({
      ...{ what: 'a page', object: body.segment },
      read: { first: Date.parse(entry.fetched_at), last: Date.parse(entry.fetched_at) },
    })),
    ...lake.map(({ object, read }) => ({ what: 'an object of the lake', object, read })),
  ];
  for (const { what, object, read } of kept) {
    const hold = holds.find((one) => isHeld(one, read));
    if (hold !== undefined) {
      const until = hold.to === null ? '' : `, which is for pages read before ${hold.to}`;
      refuse(
        `the hold ${hold.id}${until} keeps ${what} that has it, set at ${hold.placed_at}`,
        'Have the hold released first, if it may be: archive hold release.',
      );
    }
    const { lock } = (await store.facts(object)) ?? {};
    if (lock === undefined) continue;
    refuse(`${object}: ${lockText(lock)}`, 'Repeat the command then. Nothing was erased.');
  }
}

async function readably<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `reading the archive ${location}: ${error.message}`, {
      next: 'The archive is damaged: `npx sluice archive verify` lists every break.',
      cause: error,
    });
  }
}
