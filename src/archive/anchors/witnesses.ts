// Requests cosignatures of checkpoints from witnesses (c2sp.org/tlog-witness). A witness has seen every earlier
// checkpoint and signs only a tree that extends it, so the log cannot show two histories to two readers. The stored
// object is the signed checkpoint with the witnesses' lines below. Invariants: a line counts only if it is the key's
// signature over this text, whatever else a witness sends; a slow or lying witness does not affect the others.

import {
  ExportError,
  errorText,
  type HttpClient,
  type HttpResponse,
  type Secret,
} from '../../contracts/index.ts';
import type { ObjectStore } from '../../objects/index.ts';
import type { Published } from '../log.ts';
import { consistencyProof } from '../merkle.ts';
import { openNote, parseNote, parseWitnessKey, type Verifier } from '../note.ts';
import { ArchiveReader } from '../reader.ts';
import { tileHashes } from '../tiles.ts';
import type { Anchor } from './anchors.ts';

/** A witness as configured. */
export interface WitnessSettings {
  readonly url: string;
  /** Its vkey. */
  readonly key: string;
}

/** Dependencies of the requests. */
export interface WitnessDeps {
  readonly store: ObjectStore;
  readonly http: HttpClient;
  readonly proxy?: Secret | undefined;
}

const everyMs = 60_000;
const timeoutMs = 15_000;
const answerBytesMax = 64 * 1024;
/** The first attempt uses the assumed size of the witness, the second one the size that it reports. */
const attemptsMax = 3;
const goesOn =
  'Check its url and key, and contact its operator. The archive continues; sluice requests a cosignature again with the next checkpoint.';

/** Requests all of them concurrently. */
export function witnessing(settings: readonly WitnessSettings[], deps: WitnessDeps): Anchor {
  const witnesses = settings.map((one) => new Witness(one, deps));
  return {
    kind: 'cosig',
    everyMs,
    async ask(checkpoint, signal) {
      const answers = await Promise.allSettled(
        witnesses.map((witness) => witness.cosigned(checkpoint, signal)),
      );
      const lines = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const failures = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      const proof = lines.length === 0 ? null : Buffer.concat([checkpoint.note, ...lines]);
      return { proof, failures };
    },
    check: (proof, checkpoint) =>
      checkCosigned(
        proof,
        checkpoint,
        settings.map(({ key }) => parseWitnessKey(key)),
      ),
  };
}

/** Throws a SyntaxError unless it is the checkpoint with lines of these witnesses only. */
function checkCosigned(
  proof: Uint8Array,
  { note }: Published,
  witnesses: readonly Verifier[],
): void {
  const lines = Buffer.from(proof.subarray(note.length));
  if (!Buffer.from(note).equals(proof.subarray(0, note.length)) || lines.length === 0) {
    throw new SyntaxError('it is not the checkpoint with lines of witnesses');
  }
  const text = textOf(note);
  for (const line of lines.toString('utf8').trimEnd().split('\n')) {
    openNote(Buffer.concat([text, Buffer.from(`${line}\n`)]), witnesses);
  }
}

/** The flaw of a witness's key; null: none. */
export function witnessFlaw(key: string): string | null {
  try {
    parseWitnessKey(key);
    return null;
  } catch (error) {
    return `witnesses: ${errorText(error)}`;
  }
}

class Witness {
  readonly #deps: WitnessDeps;
  readonly #url: string;
  readonly #key: Verifier;
  /** Size of the last tree that it has seen, as far as known. */
  #seen = 0;

  constructor({ url, key }: WitnessSettings, deps: WitnessDeps) {
    this.#deps = deps;
    this.#url = `${url.replace(/\/+$/, '')}/add-checkpoint`;
    this.#key = parseWitnessKey(key);
  }

  /** Its signature line for this checkpoint. Throws an ExportError. */
  async cosigned(checkpoint: Published, signal: AbortSignal): Promise<Uint8Array> {
    try {
      return await this.#cosigned(checkpoint, signal);
    } catch (error) {
      if (error instanceof ExportError) throw error;
      throw this.#failure(errorText(error), goesOn);
    }
  }

  async #cosigned(checkpoint: Published, signal: AbortSignal): Promise<Uint8Array> {
    const { size, note } = checkpoint;
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const asked = Math.min(this.#seen, size);
      const { status, headers, body } = await this.#post(asked, checkpoint, signal);
      if (status === 200) {
        const line = lineOf(this.#key, note, body);
        this.#seen = size;
        return line;
      }
      if (status !== 409) throw new SyntaxError(meanings[status] ?? `it answered ${status}`);
      const seen = sizeIn(headers['content-type'], body);
      if (seen > size) {
        const what = `it has seen ${seen} entries of this log, and the archive has ${size}`;
        const next =
          'An older state was restored, or another log is written under this name and key: verify the archive, and request the checkpoint that it has seen from the operator of the witness.';
        throw this.#failure(what, next);
      }
      this.#seen = seen;
    }
    throw new SyntaxError('it says again and again that it has seen another size');
  }

  async #post(
    older: number,
    { size, note }: Published,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { http, proxy, store } = this.#deps;
    const reader = new ArchiveReader(store);
    const hashes = tileHashes(size, async (tile) => {
      const found = await reader.tile(tile);
      if (found === null) throw new SyntaxError('a tile of the archive is missing');
      return found;
    });
    const proof = older === size ? [] : await consistencyProof(older, size, hashes);
    const lines = proof.map((hash) => `${hash.toString('base64')}\n`).join('');
    return await http.request(
      {
        method: 'POST',
        url: this.#url,
        headers: { 'content-type': 'text/plain; charset=utf-8' },
        body: Buffer.concat([Buffer.from(`old ${older}\n${lines}\n`), note]),
        ...(proxy === undefined ? {} : { proxy: proxy.reveal() }),
        timeoutMs,
        bodyBytesMax: answerBytesMax,
      },
      signal,
    );
  }

  #failure(what: string, next: string): ExportError {
    const message = `requesting a cosignature from the witness ${this.#key.name}: ${what}`;
    return new ExportError('sink_unreachable', message, { next });
  }
}

const meanings: Readonly<Record<number, string>> = {
  403: 'it does not know the key that signs this log (403)',
  404: 'it does not know this log (404): its operator has to add it',
  422: 'it has seen another history of this log (422)',
};

/** The line of the response that the key has signed. Throws a SyntaxError. */
function lineOf(key: Verifier, note: Uint8Array, answer: Uint8Array): Uint8Array {
  const isKeys = ({ name, keyId }: Pick<Verifier, 'name' | 'keyId'>) =>
    name === key.name && keyId.equals(key.keyId);
  const lines = parseNote(Buffer.concat([textOf(note), answer])).signatures.filter(isKeys);
  const [line] = lines;
  if (line === undefined) throw new SyntaxError('its answer has no signature of its key');
  const signed = Buffer.concat([line.keyId, line.signature]).toString('base64');
  const bytes = Buffer.from(`— ${line.name} ${signed}\n`);
  openNote(Buffer.concat([textOf(note), bytes]), [key]);
  return bytes;
}

/** A note without its signatures. */
function textOf(note: Uint8Array): Uint8Array {
  return Buffer.from(`${parseNote(note).text}\n`);
}

function sizeIn(type: string | undefined, body: Uint8Array): number {
  const text = Buffer.from(body).toString('latin1');
  const size = /^(0|[1-9]\d{0,15})\n?$/.test(text) ? Number(text) : Number.NaN;
  if (type?.startsWith('text/x.tlog.size') && Number.isSafeInteger(size)) return size;
  throw new SyntaxError('it answered 409 without a size that it has seen');
}
