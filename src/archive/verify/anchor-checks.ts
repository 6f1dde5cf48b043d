// Checks the external proofs of an archive's checkpoints against the parties that the reader trusts: time stamps and
// cosignatures show that the entries under a checkpoint existed at a time. Entries name the proofs by their hashes;
// proofs of the newest checkpoint have no entry yet. Invariants: without trusted parties, the report contains only
// facts that need none; with trusted parties, an archive without a valid proof has a break.

import { hash, type X509Certificate } from 'node:crypto';
import { timeText } from '../../tools/index.ts';
import { checkStamp } from '../anchors/time-stamp.ts';
import type { Entry } from '../entries.ts';
import { checkpointSizeOf } from '../layout.ts';
import { type NodeHashes, rootAt } from '../merkle.ts';
import { cosignedAt, type NoteSignature, openNote, parseNote, type Verifier } from '../note.ts';
import type { ArchiveReader } from '../reader.ts';
import type { Break, WitnessedSize } from './findings.ts';
import type { LogKeys } from './signatures.ts';

/** The external parties that the reader trusts. */
export interface Outside {
  /** Authorities of time stamps; undefined: stamps are not checked. */
  readonly authorities?: readonly X509Certificate[];
  /** Witnesses, and the required number of cosignatures; undefined: none is checked. */
  readonly witnesses?: { readonly keys: readonly Verifier[]; readonly quorum: number };
  /** An external party must have seen the archive since then, epoch milliseconds. */
  readonly seenSince?: number;
}

/** Dependencies of the checks. */
export interface AnchorCheckDeps {
  readonly reader: ArchiveReader;
  /** Of the tree as far as it was walked. */
  readonly hashes: NodeHashes;
  readonly keys: LogKeys;
  readonly outside: Outside;
  readonly found: (one: Break) => unknown;
}

type AnchorEntry = Extract<Entry, { readonly t: 'anchor' }>;

/** Checks proofs, in the order of the log. */
export class AnchorChecks {
  readonly #deps: AnchorCheckDeps;
  /** Objects named by entries, for the last named checkpoint. */
  readonly #named = new Set<string>();
  readonly #unjudged = { tsr: 0, cosig: 0 };
  #stamps = 0;
  #stamp: WitnessedSize | null = null;
  #cosigned = 0;
  #cosignature: WitnessedSize | null = null;

  constructor(deps: AnchorCheckDeps) {
    this.#deps = deps;
  }

  /** Checks a proof that an entry names. */
  async take(index: number, { object, sha256, size }: AnchorEntry): Promise<void> {
    if (this.#named.size > namedMax) this.#named.clear();
    this.#named.add(object);
    await this.#orBreak({ index, object }, async () => {
      if (checkpointSizeOf(object) !== size) throw new SyntaxError('it is of another checkpoint');
      const bytes = await this.#deps.reader.named('anchor', object);
      if (bytes === null) throw new SyntaxError('it is missing');
      if (hash('sha256', bytes, 'hex') !== sha256) throw new SyntaxError('it was changed');
      await this.#judge(object, bytes);
    });
  }

  /** Checks a proof without an entry, for a checkpoint within the tree. */
  async left(object: string): Promise<void> {
    if (this.#named.has(object)) return;
    await this.#orBreak({ index: null, object }, async () => {
      const bytes = await this.#deps.reader.named('anchor', object);
      if (bytes !== null) await this.#judge(object, bytes);
    });
  }

  /** The results, and remarks for the reader; reports a break if a required proof is missing. */
  end() {
    const { authorities, seenSince, witnesses } = this.#deps.outside;
    const none = (what: string) =>
      this.#deps.found({ index: null, stream: null, seq: null, object: null, what });
    if (authorities !== undefined && this.#stamp === null) {
      none('the archive has no time stamp of a given authority');
    }
    if (witnesses !== undefined && this.#cosignature === null) {
      none(`no checkpoint is cosigned by ${witnesses.quorum} of the witnesses that were given`);
    }
    const seenAt = Math.max(this.#stamp?.at ?? 0, this.#cosignature?.at ?? 0);
    if (seenSince !== undefined && seenAt < seenSince) {
      const last = seenAt === 0 ? 'never' : `last at ${timeText(seenAt)}`;
      none(
        `the archive was seen outside ${last}: an older state was restored, or it was not witnessed since`,
      );
    }
    return {
      ...{ stamps: this.#stamps, stamp: this.#stamp },
      ...{ cosigned: this.#cosigned, cosignature: this.#cosignature },
      remarks: this.#remarks(),
    };
  }

  #remarks(): readonly string[] {
    const { tsr, cosig } = this.#unjudged;
    return [
      ...(tsr === 0
        ? []
        : [`${tsr} time stamps were kept, and not judged: give their authority to --tsa`]),
      ...(cosig === 0
        ? []
        : [
            `${cosig} checkpoints with cosignatures were kept, and not judged: give witnesses to --witness`,
          ]),
    ];
  }

  async #orBreak(
    { index, object }: Pick<Break, 'index' | 'object'>,
    judge: () => Promise<void>,
  ): Promise<void> {
    try {
      await judge();
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const what = `a stamp or cosignature of a checkpoint is not valid: ${error.message}`;
      this.#deps.found({ index, stream: null, seq: null, object, what });
    }
  }

  async #judge(object: string, bytes: Uint8Array): Promise<void> {
    const { authorities, witnesses } = this.#deps.outside;
    if (object.endsWith('.tsr')) {
      if (authorities === undefined) this.#unjudged.tsr += 1;
      else await this.#judgeStamp(object, bytes, authorities);
    } else if (witnesses === undefined) this.#unjudged.cosig += 1;
    else await this.#judgeCosignatures(object, bytes, witnesses);
  }

  async #judgeStamp(
    object: string,
    bytes: Uint8Array,
    authorities: readonly X509Certificate[],
  ): Promise<void> {
    const note = await this.#deps.reader.named('checkpoint', object.replace(/[^.]+$/, 'note'));
    if (note === null) throw new SyntaxError('the checkpoint is missing');
    const size = await this.#sizeUnder(object, note);
    const { at, by, until } = checkStamp(bytes, note, { authorities });
    this.#stamps += 1;
    // Many authorities count whole seconds: of two equal times, the later checkpoint counts.
    if (at >= (this.#stamp?.at ?? 0)) this.#stamp = { size, at, by: [by], until };
  }

  async #judgeCosignatures(
    object: string,
    bytes: Uint8Array,
    { keys, quorum }: NonNullable<Outside['witnesses']>,
  ): Promise<void> {
    const size = await this.#sizeUnder(object, bytes);
    const isOf =
      ({ name, keyId }: NoteSignature) =>
      (key: Verifier) =>
        key.name === name && key.keyId.equals(keyId);
    const lines = parseNote(bytes).signatures.filter((line) => keys.some(isOf(line)));
    if (lines.length > 0) openNote(bytes, keys);
    const byName = new Map(lines.map((line) => [keys.findIndex(isOf(line)), line]));
    const times = Array.from(byName.values(), ({ signature }) => cosignedAt(signature));
    // The quorum has seen it by this time.
    const at = times.toSorted((a, b) => b - a)[quorum - 1];
    if (at === undefined) return;
    this.#cosigned += 1;
    if (size < (this.#cosignature?.size ?? 0)) return;
    this.#cosignature = { size, at, by: Array.from(byName.values(), ({ name }) => name) };
  }

  /** The size of a checkpoint that the log has signed and that belongs to this tree. */
  async #sizeUnder(object: string, note: Uint8Array): Promise<number> {
    const { hashes, keys } = this.#deps;
    const { size, root } = keys.open(note);
    if (size === checkpointSizeOf(object) && (await rootAt(size, hashes)).equals(root)) return size;
    throw new SyntaxError('the checkpoint is of another tree');
  }
}

/** Late proofs are named soon after their checkpoint, or never. */
const namedMax = 1_000;
