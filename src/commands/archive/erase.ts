// `sluice archive erase`: requests the erasure of records, one by its uid or all that match a filter, from the process
// that writes the archive. As with `prune`, only a process that can sign the deletion deletes. Holds and locks that keep
// the record are found here, before the request is written.

import {
  type Copy,
  copiesOf,
  isLakeBehind,
  type LakeCopy,
  lakeCopiesOf,
  ProvenCuts,
  recordOf,
} from '../../archive/audit.ts';
import { type ArchiveReader, lockText } from '../../archive/index.ts';
import { encodeRequest, isHeld, requestPath } from '../../archive/operate.ts';
import { ExportError, UsageError } from '../../contracts/index.ts';
import { counted } from '../../terminal/index.ts';
import { timeText } from '../../tools/index.ts';
import { type CommandDeps, defineCommand } from '../shared/command.ts';
import { isAgreed } from '../shared/prompt.ts';
import { holdsAt, locationArgument, provenArchive, signatureOf, signWithOption } from './given.ts';
import { listMatches, type Matches, matchesIn, uidsByLocation, whereOptions } from './matches.ts';
import { keysFor, trustedArchive, trustedKeyOption } from './trusted.ts';

const reasonMax = 1_000;

/** Erases records. */
export const erase = defineCommand({
  name: 'erase',
  about: 'erase records; their hashes and the reason stay, and everything else is proven as before',
  arguments: { location: locationArgument },
  options: {
    uid: { value: 'uid', about: 'uid of the event of the record' },
    ...whereOptions,
    from: { value: 'time', about: 'with --where: records read from this time on (RFC 3339)' },
    to: { value: 'time', about: 'with --where: records read before this time' },
    reason: { value: 'text', about: 'reason; stays in the archive for good', needed: true },
    key: trustedKeyOption,
    signWith: signWithOption,
    yes: { about: 'do not prompt' },
  },
  more: `Give --uid or --where. With --where the matching records are listed first: uid, time, stream and sentence. All of
them are requested, or none. The filter decides over events; test for a field with has(event.…).
The key in --key or --config must have signed the archive, so that no other process can put foreign uids into the list.
Prompts on a terminal, otherwise requires --yes. The process that writes the archive rewrites every page with a
record, byte for byte, and every object of the lake with its event. It does so with its next checkpoint, or at its
next start. The command is refused, with the date, while a hold or a lock keeps one of these. Events at other sinks
are not changed.`,
  async run({ location, uid, where, config, from, to, reason, key, signWith, yes }, deps) {
    const { out, err } = deps;
    if ((uid === undefined) === (where === undefined)) {
      throw new UsageError('give one of --uid and --where');
    }
    if (uid !== undefined && !/^[0-9a-f]{64}$/.test(uid)) {
      throw new UsageError('--uid: expected 64 hexadecimal characters in lower case');
    }
    if (reason.trim() === '' || reason.length > reasonMax) {
      throw new UsageError(`--reason: expected some text of at most ${reasonMax} characters`);
    }
    let requested: ReadonlyMap<string, readonly string[]> = new Map([[location, [uid ?? '']]]);
    let trusted = keysFor(location, key, null);
    if (where !== undefined) {
      const matches = await matchesIn(location, { where, config, from, to, key }, deps);
      listMatches(matches, deps);
      trusted = matches.trusted;
      requested = uidsByLocation(matches.found);
      if (requested.size === 0) return 1;
    }
    const plans: Planned[] = [];
    for (const [place, uids] of requested) {
      plans.push(...(await plansFor(place, { uids, trusted }, deps)));
    }
    const [missing] = plans.filter(({ state }) => state === 'missing');
    if (missing !== undefined) {
      err(`no record of the archive has the uid ${missing.uid}`);
      return 1;
    }
    const due = plans.filter((plan) => plan.state === 'due');
    if (due.length === 0) {
      const records = plans.length === 1 ? 'the record is' : 'the records are';
      out(`${records} erased already: \`npx sluice archive verify\` reports when and why`);
      return 0;
    }
    const reported = reportOf(due);
    if (!yes && !(await isAgreed(reported, 'erase for good?', deps))) {
      out(`${reported}; nothing is erased${process.stdin.isTTY ? '' : ': --yes erases them'}`);
      return 1;
    }
    // Every request is signed before the first is written: all are requested, or none.
    const requests: (() => Promise<void>)[] = [];
    for (const plan of due) requests.push(await requestFor(plan, { reason, signWith }));
    for (const request of requests) await request();
    const when =
      due.length === 1
        ? 'it is erased with the next checkpoint'
        : 'the next checkpoints erase one each';
    out(`${reported}: requested; ${when}`);
    return 0;
  },
});

/** A requested record, and the pages and objects that have it. */
type Planned = { readonly uid: string } & (
  | { readonly state: 'missing' | 'erased' }
  | {
      readonly state: 'due';
      readonly reader: ArchiveReader;
      readonly sha256: string;
      readonly copies: readonly Copy[];
      readonly lake: readonly LakeCopy[];
      /** When its pages were read. */
      readonly times: readonly number[];
    }
);
type Due = Extract<Planned, { readonly state: 'due' }>;

async function plansFor(
  location: string,
  { uids, trusted }: { readonly uids: readonly string[]; readonly trusted: Matches['trusted'] },
  { env }: Pick<CommandDeps, 'env'>,
): Promise<readonly Planned[]> {
  const reader =
    trusted === null
      ? await provenArchive(location, env)
      : await trustedArchive(location, trusted, env);
  const plans: Planned[] = [];
  for (const uid of uids) plans.push(await planOf(reader, uid, location));
  return plans;
}

/** Throws if a hold or a lock keeps the record, or if the lake is behind. */
async function planOf(
  reader: Awaited<ReturnType<typeof provenArchive>>,
  uid: string,
  location: string,
): Promise<Planned> {
  const found = await readably(location, () => recordOf(reader, uid));
  if (found === null) return { state: 'missing', uid };
  const { sha256, bytes, index, at } = found;
  // While upstream still serves an erased record, later pages have it again.
  const copies = await readably(location, () => copiesOf(reader, { bytes, sha256 }));
  const uids = [...new Set([uid, ...copies.flatMap((copy) => copy.uids)])];
  const pages = [index, ...copies.map((copy) => copy.index)];
  const lake = await readably(location, () =>
    lakeCopiesOf(reader, new ProvenCuts(), { pages, uids }),
  );
  const isErased = bytes === null && copies.length + lake.length === 0;
  if (isErased) return { state: 'erased', uid };
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
  const times = [at, ...copies.map(({ entry }) => entry.fetched_at)].map((time) =>
    Date.parse(time),
  );
  return { state: 'due', uid, reader, sha256, copies, lake, times };
}

function reportOf(due: readonly Due[]): string {
  const copies = due.flatMap((plan) => plan.copies);
  const pages = new Set(copies.map(({ index, body }) => `${body.segment} ${index}`)).size;
  const segments = new Set(copies.map(({ body }) => body.segment)).size;
  const cuts = new Set(due.flatMap(({ lake }) => lake.map(({ object }) => object))).size;
  const objects = cuts === 0 ? '' : `, and from ${counted(cuts, 'object')} of the lake`;
  const [only] = due;
  const records =
    due.length === 1 ? `the record of SHA-256 ${only?.sha256}` : counted(due.length, 'record');
  return `${records} would be erased from ${counted(pages, 'page')} in ${counted(segments, 'segment')}${objects}`;
}

/** Signs a request; the result writes it. */
async function requestFor(
  { reader, uid, times }: Due,
  { reason, signWith }: { readonly reason: string; readonly signWith: string | undefined },
): Promise<() => Promise<void>> {
  // The process that writes need not search all of a large archive.
  const span = { from: timeText(Math.min(...times)), to: timeText(Math.max(...times) + 1) };
  const wish = { uid, reason, asked_at: timeText(Date.now()), ...span };
  const signed = await signatureOf(reader.store, signWith, { kind: 'erase', wish });
  const request = { ...wish, ...(signed !== undefined && { signed }) };
  return async () => {
    await reader.store.put(requestPath(uid), [encodeRequest(request)]);
  };
}

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
