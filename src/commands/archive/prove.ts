// `sluice archive prove` and `check-proof`: a file that shows that one record is in an archive, and
// the check of one, for which neither the archive nor a config nor a network is needed.

import { writeFileSync } from 'node:fs';
import {
  checkProof,
  encodeProof,
  findMatch,
  type ProvenRecord,
  proofOf,
  proveRecord,
} from '../../archive/audit.ts';
import type { ArchiveReader, Verifier } from '../../archive/index.ts';
import { ExportError, errorText, UsageError } from '../../contracts/index.ts';
import { cleanText } from '../../tools/index.ts';
import { type CommandDeps, defineCommand } from '../shared/command.ts';
import {
  archivesAt,
  bytesGiven,
  keyOption,
  keysGiven,
  locationArgument,
  witnessesGiven,
} from './given.ts';
import { keysFor, trustedArchive, trustedKeyOption } from './trusted.ts';

const lengthMax = 500;
const lineFeed = 0x0a;

/** Writes a proof. */
export const prove = defineCommand({
  name: 'prove',
  about: 'write the proof that one record is in an archive to stdout',
  arguments: { location: locationArgument },
  options: {
    uid: { value: 'uid', about: 'uid of the event of the record' },
    match: { value: 'file', about: 'instead of --uid: a file with the exact bytes of the record' },
    record: { value: 'file', about: "write the record's exact bytes there, for check-proof" },
    key: trustedKeyOption,
  },
  more: `Give --uid or --match. Where the archives of several shards lie below the location, each is searched.
Exit code: 0 proven, 1 no record of the archive is that one.`,
  async run({ location, uid, match, record: file, key }, { out, err, env }) {
    const requested = requestedBy(uid, match);
    const trusted = keysFor(location, key, null);
    let failure: ExportError | null = null;
    for (const one of await archivesAt(location, env)) {
      const found = await provenIn(one, requested, { trusted, env });
      // Another shard may have the record; where none has it, the damage is reported and not a "no".
      if (found instanceof ExportError) failure ??= found;
      if (found === null || found instanceof ExportError) continue;
      if (file !== undefined) writeRecord(file, found.record);
      out(encodeProof(found.proof).replace(/\n$/, ''));
      return 0;
    }
    if (failure !== null) throw failure;
    err(`no record of the archive ${requested.what}`);
    return 1;
  },
});

/** How a record is found. */
interface Requested {
  /** Behind "no record of the archive". */
  readonly what: string;
  prove(reader: ArchiveReader): Promise<ProvenRecord | null>;
}

/** Throws a UsageError unless exactly one of the two is given. */
function requestedBy(uid: string | undefined, match: string | undefined): Requested {
  if ((uid === undefined) === (match === undefined)) {
    throw new UsageError('give one of --uid and --match');
  }
  if (match === undefined) {
    const known = uid ?? '';
    if (!/^[0-9a-f]{64}$/.test(known)) {
      throw new UsageError('--uid: expected 64 hexadecimal characters in lower case');
    }
    return { what: `has the uid ${known}`, prove: (reader) => proveRecord(reader, known) };
  }
  const bytes = bytesGiven('match', match);
  const hint =
    bytes.at(-1) === lineFeed ? '; the file ends with a line end, which no record does' : '';
  return {
    what: `has exactly the ${bytes.length} bytes of ${cleanText(match, lengthMax)}${hint}`,
    async prove(reader) {
      const found = await findMatch(reader, bytes);
      return found === null ? null : await proofOf(reader, found, bytes);
    },
  };
}

/** Null where the archive has no such record; the error where it cannot be read or the record was erased. */
async function provenIn(
  location: string,
  requested: Requested,
  of: { readonly trusted: readonly Verifier[] | null; readonly env: CommandDeps['env'] },
): Promise<ProvenRecord | ExportError | null> {
  let reader: ArchiveReader | null = null;
  try {
    reader = await trustedArchive(location, of.trusted, of.env);
    return await requested.prove(reader);
  } catch (error) {
    if (error instanceof ExportError) return error;
    if (!(error instanceof SyntaxError)) throw error;
    return new ExportError('sink_refused', `proving a record of ${location}: ${error.message}`, {
      next: 'The archive is damaged: `npx sluice archive verify` lists all that is broken.',
      cause: error,
    });
  } finally {
    reader?.store.close();
  }
}

function writeRecord(file: string, record: Uint8Array): void {
  try {
    writeFileSync(file, record, { mode: 0o640 });
  } catch (error) {
    throw new UsageError(`--record: ${errorText(error)}`);
  }
}

/** Checks a proof. */
export const checkProofFile = defineCommand({
  name: 'check-proof',
  about: 'check that a record is in an archive, with the proof and a key only',
  arguments: { file: { about: 'the proof, as written by prove' } },
  options: {
    record: { value: 'file', about: 'the record, its exact bytes', needed: true },
    key: keyOption,
    witness: {
      value: 'vkey',
      about:
        'a witness, or a file of witnesses, whose cosignature is required; prove copies their lines into the proof',
      several: true,
    },
  },
  async run({ file, record, key, witness }, { out, err }) {
    const trusted = keysGiven(key);
    const witnesses = witness === undefined ? [] : witnessesGiven(witness, undefined).keys;
    const proof = bytesGiven('file', file).toString('utf8');
    try {
      const shown = checkProof(proof, bytesGiven('record', record), trusted, witnesses);
      const { index, place, entry, checkpoint, by, seenBy } = shown;
      const { events, stream, seq, fetched_at: at } = entry;
      const keys = by.map(({ vkey }) => vkey).join(', ');
      const page = `record ${place} of ${events.count} of page ${seq} of ${stream}, read at ${at}`;
      out(cleanText(`true: the record is in the archive ${checkpoint.origin}`, lengthMax));
      out(`  ${cleanText(page, lengthMax)}`);
      out(`  ${cleanText(`entry ${index} of ${checkpoint.size}, signed by ${keys}`, lengthMax)}`);
      if (seenBy.length > 0) {
        const names = seenBy.map(({ name }) => name).join(', ');
        out(`  ${cleanText(`cosigned by ${names}`, lengthMax)}`);
      }
      return 0;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      err(`FALSE: ${cleanText(error.message, lengthMax)}`);
      return 1;
    }
  },
});
