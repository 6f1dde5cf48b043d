// Verifies an archive from its objects alone: without config or state, and without network except to its store. One
// pass in the order of the log, from the tree (proven-log.ts) to the entries, their relations and the bodies
// (entry-checks.ts). Invariants: any contradiction to the signed log becomes a break with its location, and the walk
// continues after it; only an unreadable archive ends the walk; nothing is trusted because it looks complete: at the
// end, a key given by the reader must have signed the root to which everything led.

import { hash } from 'node:crypto';
import { ExportError } from '../../contracts/index.ts';
import { type Checkpoint, parseCheckpoint } from '../checkpoint.ts';
import { type Erasures, findErasures } from '../erasures.ts';
import { checkpointPath, manifestPath, parseManifest } from '../layout.ts';
import { keyOfLog, shardOfLog } from '../log-name.ts';
import { emptyRoot, rootAt } from '../merkle.ts';
import { parseNote, type Verifier, withoutFence } from '../note.ts';
import { ProvenReader } from '../proven-reader.ts';
import type { ArchiveReader } from '../reader.ts';
import { tileOf, tilePath, tileWidth } from '../tiles.ts';
import { StreamAccounts } from './accounts.ts';
import { AnchorChecks, type Outside } from './anchor-checks.ts';
import { DayChecks } from './day-checks.ts';
import { EntryChecks } from './entry-checks.ts';
import type { Break, Report } from './findings.ts';
import { type FoundCheckpoint, headOf, keptObjects, newestKept } from './kept-checkpoints.ts';
import { LakeChecks } from './lake-checks.ts';
import { ProvenLog } from './proven-log.ts';
import { LogKeys, vkeysIn } from './signatures.ts';
import { splitBundle } from './split-bundle.ts';
import { Strays } from './strays.ts';
import { wishRemarks } from './wishes.ts';

/** The parameters of a verification. */
export interface VerifyOptions extends Outside {
  /** Keys that the reader trusts, from outside the archive. */
  readonly trusted: readonly Verifier[];
  /** The required shard, if a trusted key signs the logs of several. */
  readonly shard?: number | undefined;
  /** An older checkpoint of the log, as a signed note from elsewhere. */
  readonly since?: Uint8Array;
  /** Bodies of pages read in this time, in epoch milliseconds; the tree is proven as a whole. */
  readonly from?: number;
  readonly to?: number;
  /** Each removed body is a break, even if an entry explains it. */
  readonly nothingGone?: boolean;
  /** Called from time to time with the number of checked entries, and of all entries. */
  readonly progress?: (done: number, of: number) => void;
}

/** Limit of listed breaks; an archive with more is broken anyway. */
const breaksMax = 10_000;

/** Verifies an archive. Throws an ExportError if it cannot be read. */
export async function verifyArchive(
  reader: ArchiveReader,
  options: VerifyOptions,
): Promise<Report> {
  return await new Verification(reader, options).run();
}

class Verification {
  readonly #reader: ArchiveReader;
  readonly #options: VerifyOptions;
  readonly #breaks: Break[] = [];
  readonly #remarks: string[] = [];
  readonly #accounts = new StreamAccounts((one, at) => this.#found(one, at));
  #signedBy: readonly Verifier[] = [];
  #omitted = 0;
  #strays: { readonly names: readonly string[]; readonly omitted: number } = {
    ...{ names: [], omitted: 0 },
  };

  constructor(reader: ArchiveReader, options: VerifyOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  async run(): Promise<Report> {
    const manifest = await this.#reader.small(manifestPath);
    const head = await this.#head(manifest !== null);
    const keys = await this.#keys(manifest, head);
    const { checkpoint } = head;
    const found = (one: Break, at?: string) => this.#found(one, at);
    const log = new ProvenLog(this.#reader, checkpoint, (damage) =>
      found({ ...damage, stream: null, seq: null }),
    );
    const isAsked = (first: string, last = first) => this.#isAsked(first, last);
    let known: Promise<Erasures> | null = null;
    const erasures = () => {
      known ??= findErasures(this.#reader, checkpoint.size);
      return known;
    };
    const proven = new ProvenReader(this.#reader.store, checkpoint);
    const strays = new Strays();
    const deps = {
      reader: this.#reader,
      proven,
      strays,
      hashes: log.hashes,
      keys,
      isAsked,
      found,
      erasures,
    };
    const anchors = new AnchorChecks({ ...deps, outside: this.#options });
    const lake = new LakeChecks(deps);
    const days = new DayChecks(deps);
    const checks = new EntryChecks({
      ...{ ...deps, anchors, lake, days, accounts: this.#accounts },
      nothingGone: this.#options.nothingGone ?? false,
      manifestSha256: manifest === null ? '' : hash('sha256', manifest, 'hex'),
    });
    await this.#walk(log, checks, checkpoint.size);
    this.#remarks.push(...(await lake.finish()));
    this.#remarks.push(...(await wishRemarks(this.#reader, checks.removals.holds)));
    const isSigned = this.#checkSignatures(head, keys);
    if (checks.newer !== null) this.#reportNewer(checks.newer, isSigned);
    await this.#checkNewer(head, keys, { after: checks.lastKept, anchors });
    await this.#checkBeyond(checkpoint.size);
    this.#strays = await strays.finish(this.#reader, checkpoint.size);
    return this.#report(head, checks, anchors);
  }

  async #walk(log: ProvenLog, checks: EntryChecks, size: number): Promise<void> {
    const since = this.#since();
    let done = 0;
    for await (const entries of log.bundles()) {
      done += entries.length;
      if (since !== null && since.size <= done && since.size > done - entries.length) {
        await this.#checkSince(since, log);
      }
      for (const entry of entries) await checks.take(entry);
      this.#options.progress?.(done, size);
    }
    await checks.finish();
    this.#remarks.push(...(await checks.removals.finish()), ...checks.clocks.remarks());
    if (since !== null && since.size > size) {
      this.#break(
        `the archive has ${size} entries, and had ${since.size} when the given checkpoint was signed: its end is missing, or an older state was put back`,
        checkpointPath,
      );
    }
  }

  /** The newest checkpoint; if it is damaged, the newest permanent copy replaces it. */
  async #head(isArchive: boolean): Promise<FoundCheckpoint> {
    const bytes = await this.#reader.small(checkpointPath);
    const head = bytes === null ? null : headOf(bytes);
    if (head !== null) return head;
    const kept = await newestKept(this.#reader);
    if (bytes === null && kept === null && !isArchive) {
      throw unreadable(this.#reader, 'there is no archive');
    }
    const what = bytes === null ? 'the checkpoint is missing' : 'the checkpoint is no signed note';
    if (kept === null) {
      this.#break(`${what}, and none was kept in checkpoints/: nothing is proven`, checkpointPath);
      return { bytes: null, checkpoint: { origin: '', size: 0, root: emptyRoot } };
    }
    this.#break(what, checkpointPath);
    this.#remarks.push(`it was proven under the checkpoint of ${kept.checkpoint.size} entries`);
    return kept;
  }

  async #keys(manifest: Uint8Array | null, { checkpoint }: FoundCheckpoint): Promise<LogKeys> {
    if (manifest === null) this.#break('archive.json is missing', manifestPath);
    else {
      try {
        return new LogKeys(parseManifest(manifest).verifier);
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        if (await this.#isWritten(manifest, checkpoint.size)) {
          throw unreadable(this.#reader, error.message);
        }
        this.#break(`archive.json is damaged: ${error.message}`, manifestPath);
      }
    }
    const trusted = this.#options.trusted.map((key) => keyOfLog(key, checkpoint.origin));
    const [first] = [...vkeysIn(manifest), ...trusted];
    if (first !== undefined) return new LogKeys(first);
    throw unreadable(this.#reader, 'archive.json names no key, and none was given');
  }

  /** True if the log's first entry has the stored `archive.json`. */
  async #isWritten(manifest: Uint8Array, size: number): Promise<boolean> {
    const bundle = await this.#reader.bundle(0, Math.min(size, tileWidth));
    const [first] = bundle === null ? [] : splitBundle(bundle.bytes, []);
    return first?.bytes.toString('utf8').includes(hash('sha256', manifest, 'hex')) ?? false;
  }

  #since(): Checkpoint | null {
    const { since } = this.#options;
    if (since === undefined) {
      this.#remarks.push(
        'a whole older state that was put back is consistent in itself: only a newer checkpoint from elsewhere (--since), a stamp or a witness shows it',
      );
      return null;
    }
    return parseCheckpoint(parseNote(since).text);
  }

  async #checkSince({ size, root }: Checkpoint, log: ProvenLog): Promise<void> {
    try {
      if (Buffer.compare(await rootAt(size, log.hashes), root) === 0) return;
    } catch (error) {
      // Reported where the missing data is; whether the rest is that log stays open.
      if (error instanceof SyntaxError) return;
      throw error;
    }
    const what = `the first ${size} entries are not those of the given checkpoint: the log was rewritten`;
    this.#break(what, checkpointPath);
  }

  /** An entry that no trusted key has signed is a break, and not a newer format. */
  #reportNewer({ index, what }: { index: number; what: string }, isSigned: boolean): void {
    if (isSigned) throw unreadable(this.#reader, `entry ${index}: ${what}; so there is no verdict`);
    this.#found({ index, stream: null, seq: null, object: null, what });
  }

  /**
   * Checks the signatures of the root, once the walk has found the log's keys. True if a trusted key leads to a signer.
   */
  #checkSignatures({ bytes }: FoundCheckpoint, keys: LogKeys): boolean {
    const { since, trusted } = this.#options;
    const reported = (object: string | null, doing: () => unknown) => {
      try {
        doing();
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        this.#break(
          object === null ? `the given checkpoint: ${error.message}` : error.message,
          object,
        );
      }
    };
    if (bytes !== null) {
      reported(checkpointPath, () => {
        this.#signedBy = keys.open(bytes).by;
      });
    }
    if (since !== undefined) reported(null, () => keys.open(since));
    const why = keys.whyUntrusted(trusted);
    if (why !== null) this.#break(why, checkpointPath);
    this.#checkShard(keys);
    return why === null && this.#signedBy.length > 0;
  }

  /** Each shard's log is valid by itself, even in the location of another shard. */
  #checkShard({ origin }: LogKeys): void {
    const { shard, trusted } = this.#options;
    const found = trusted.map((key) => shardOfLog(key, origin)).find((one) => one !== null);
    if (shard === undefined || found === undefined || found === shard) return;
    const what = `the log is ${origin}, that of shard ${found}, and lies at the location of shard ${shard}`;
    this.#break(what, manifestPath);
  }

  /** Checks permanent copies without an entry, of this size and larger, and the proofs beside them. */
  async #checkNewer(
    { bytes, checkpoint }: FoundCheckpoint,
    keys: LogKeys,
    { after, anchors }: { readonly after: string | null; readonly anchors: AnchorChecks },
  ) {
    let isKept = checkpoint.size === 0;
    const from = after?.replace(/note$/, '') ?? '';
    for await (const { name, size, isNote } of keptObjects(this.#reader)) {
      if (!isNote && size <= checkpoint.size && name > from) await anchors.left(name);
      if (size < checkpoint.size || (!isNote && size === checkpoint.size)) continue;
      const kept = await this.#reader.small(name);
      if (kept === null) continue;
      if (size === checkpoint.size) {
        isKept = true;
        if (bytes !== null && withoutFence(bytes).equals(kept)) continue;
        this.#break('the kept copy of the newest checkpoint is another note', name);
        continue;
      }
      // A running writer has signed this checkpoint meanwhile, before its copy.
      const now = headOf((await this.#reader.small(checkpointPath)) ?? kept.subarray(0, 0));
      if (now !== null && now.checkpoint.size >= size) continue;
      const what = !isNote
        ? `a checkpoint of ${size} entries was seen outside: the one here is an older one`
        : signedText(kept, keys)
          ? `the checkpoint is an older one: one of ${size} entries was signed`
          : 'the kept checkpoint is damaged, and newer than the checkpoint';
      this.#break(what, name);
    }
    if (!isKept) {
      this.#remarks.push('the newest checkpoint has no copy in checkpoints/ yet, as after a crash');
    }
  }

  /** Entries without a checkpoint: of a commit under way, or an interrupted one. */
  async #checkBeyond(size: number): Promise<void> {
    const { index, width } = tileOf('entries', size, size);
    for await (const found of this.#reader.widthsOf({ level: 'entries', index })) {
      if (found <= width) continue;
      this.#remarks.push(
        `entries beyond the checkpoint are in ${tilePath({ level: 'entries', index, width: found })}: a commit under way, or one that was broken off, or the checkpoint is an older one`,
      );
      return;
    }
  }

  #isAsked(first: string, last: string): boolean {
    const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = this.#options;
    return Date.parse(last) >= from && Date.parse(first) < to;
  }

  #break(what: string, object: string | null): void {
    this.#found({ index: null, stream: null, seq: null, object, what });
  }

  #found(one: Break, at?: string): Break {
    if (this.#breaks.length < breaksMax) this.#breaks.push(one);
    else this.#omitted += 1;
    this.#accounts.mark(one, at);
    return one;
  }

  #report({ checkpoint }: FoundCheckpoint, checks: EntryChecks, anchors: AnchorChecks): Report {
    const { origin, size, root } = checkpoint;
    const { pages, records, bodyBytes, checkpoints, configs, successions, removals } = checks;
    const { streams, gaps } = this.#accounts;
    const { remarks, ...seen } = anchors.end();
    return {
      ...seen,
      ...{
        place: this.#reader.store.location,
        origin,
        size,
        checkpoints,
        pages,
        records,
        bodyBytes,
      },
      ...{ configs, successions, erasures: removals.erasures, removed: removals.removed },
      compared: checks.comparisons.reported,
      ...{ siblings: [...checks.siblings.values()], work: checks.work },
      unsharded: checks.unsharded,
      ...{ root: Buffer.from(root).toString('base64'), streams, gaps },
      strays: this.#strays.names,
      remarks: [
        ...this.#accounts.continued,
        ...this.#remarks,
        ...remarks,
        ...strayTexts(this.#strays),
      ],
      signedBy: this.#signedBy,
      breaks: this.#breaks.toSorted((a, b) => (a.index ?? -1) - (b.index ?? -1)),
      breaksOmitted: this.#omitted,
    };
  }
}

const strayNamesMax = 20;

function strayTexts({
  names,
  omitted,
}: {
  readonly names: readonly string[];
  readonly omitted: number;
}): readonly string[] {
  if (names.length === 0) return [];
  const more = names.length + omitted - strayNamesMax;
  const shown = names.slice(0, strayNamesMax).join(', ');
  return [
    `no entry names ${names.length + omitted} objects, which are no evidence: ${shown}${more > 0 ? `, and ${more} more` : ''}`,
  ];
}

/** The error if no verdict is possible. */
function unreadable({ store }: ArchiveReader, why: string): ExportError {
  return new ExportError('sink_refused', `reading the archive at ${store.location}: ${why}`, {
    next: 'Name the location of the archive, or read it with the version of sluice that wrote it.',
  });
}

function signedText(bytes: Uint8Array, keys: LogKeys): boolean {
  try {
    keys.open(bytes);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
