// `sluice archive prove` and `check-proof`: a file that shows that one record is in an archive, and
// the check of one, for which neither the archive nor a config nor a network is needed.

import { writeFileSync } from 'node:fs';
import { checkProof, encodeProof } from '../../archive/proof.ts';
import { type ProvenRecord, proveRecord } from '../../archive/prove.ts';
import { ExportError, errorText, UsageError } from '../../contracts/errors.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { defineCommand } from '../shared/command.ts';
import {
  bytesGiven,
  keyOption,
  keysGiven,
  locationArgument,
  openArchive,
  witnessesGiven,
} from './given.ts';

const lengthMax = 500;

/** Writes a proof. */
export const prove = defineCommand({
  name: 'prove',
  about: 'write the proof that one record is in an archive to stdout',
  arguments: { location: locationArgument },
  options: {
    uid: { value: 'uid', about: 'the uid of the event that the record became', needed: true },
    record: { value: 'file', about: "write the record's exact bytes there, for check-proof" },
  },
  async run({ location, uid, record: file }, { out, err, env }) {
    if (!/^[0-9a-f]{64}$/.test(uid)) {
      throw new UsageError('--uid: expected 64 hexadecimal characters in lower case');
    }
    let found: ProvenRecord | null;
    try {
      found = await proveRecord(await openArchive(location, env), uid);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `proving a record of ${location}: ${error.message}`, {
        next: 'The archive is damaged: `npx sluice archive verify` tells all that is broken.',
        cause: error,
      });
    }
    if (found === null) {
      err(`no record of the archive has the uid ${uid}`);
      return 1;
    }
    if (file !== undefined) writeRecord(file, found.record);
    out(encodeProof(found.proof).replace(/\n$/, ''));
    return 0;
  },
});

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
  about: 'check that a record is in an archive, with nothing but the proof and a key',
  arguments: { file: { about: 'the proof, as prove has written it' } },
  options: {
    record: { value: 'file', about: 'the record, its exact bytes', needed: true },
    key: keyOption,
    witness: {
      value: 'vkey',
      about:
        'a witness, or a file of them, that has to have cosigned; prove takes their lines along',
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
