// Authorises removals from an archive. A request to prune, to erase or to release a hold is an object of the store, and
// others can write to the store. In a new archive the writer accepts only requests signed by the archive's key or an
// operator's key. Invariants: a signature is valid for one archive, one kind of request and its exact content; a
// signature older than a week, or already used, is rejected.

import { hash } from 'node:crypto';
import type { Heads } from './heads.ts';
import { keyOfLog } from './log-name.ts';
import { openNote, parseVkey, type Signer, signNote, type Verifier } from './note.ts';

/** The kinds of requests. */
export type RequestKind = 'prune' | 'erase' | 'release';

/** A signed request is valid for this long, milliseconds. */
export const requestAgeMsMax: number = 7 * 86_400_000;
const clockMsMax = 5 * 60_000;

/** The rules by which an archive's writer accepts requests. */
export interface RequestRules {
  /** True: unsigned requests are accepted too. */
  readonly acceptsUnsigned: boolean;
  /** Keys that may sign, beside the archive's own. */
  readonly operators: readonly Verifier[];
}

/** A request as read. */
export interface ReadRequest {
  readonly kind: RequestKind;
  /** Its content without the signature. */
  readonly wish: object;
  /** Its creation time, RFC 3339. */
  readonly at: string;
  /** A signed note (C2SP signed-note) over kind, archive and content. */
  readonly signed?: string | undefined;
}

/** The signer of a request, as its entry names it; empty for an unsigned one. */
export interface Authority {
  /** A vkey. */
  readonly by?: string;
  /** SHA-256 of the signed text, in hex. */
  readonly request?: string;
}

/** The archive of a request: two archives may have one key, and so one name. */
export interface RequestedArchive {
  /** The log's name. */
  readonly origin: string;
  /** SHA-256 of `archive.json`, in hex. */
  readonly archive: string;
}

function requestText(
  { origin, archive }: RequestedArchive,
  { kind, wish }: Pick<ReadRequest, 'kind' | 'wish'>,
): string {
  return `sluice archive request\n${origin}\n${archive}\n${kind}\n${JSON.stringify(wish)}\n`;
}

/** The signature that `authorityOf` checks. */
export async function signRequest(
  signer: Signer,
  of: RequestedArchive,
  request: Pick<ReadRequest, 'kind' | 'wish'>,
): Promise<string> {
  const own = { ...signer, verifier: keyOfLog(signer.verifier, of.origin) };
  return await signNote(requestText(of, request), [own]);
}

/** Checks that a request is authorised. Throws a SyntaxError with the reason if it is not. */
export function authorityOf(
  { kind, wish, at, signed }: ReadRequest,
  {
    of,
    heads,
    rules,
    now,
  }: {
    readonly of: RequestedArchive;
    readonly heads: Pick<Heads, 'key' | 'done'>;
    readonly rules: RequestRules;
    readonly now: number;
  },
): Authority {
  if (signed === undefined) {
    if (rules.acceptsUnsigned) return {};
    throw new SyntaxError('the request is not signed, and accept_requests is false');
  }
  const text = requestText(of, { kind, wish });
  const keys = [parseVkey(heads.key), ...rules.operators.map((key) => keyOfLog(key, of.origin))];
  const opened = openNote(Buffer.from(signed), keys);
  if (opened.text !== text) throw new SyntaxError('the request is not the one that was signed');
  const ageMs = now - Date.parse(at);
  if (ageMs > requestAgeMsMax || ageMs < -clockMsMax) {
    throw new SyntaxError(`the request was signed for ${at}, and is carried out within a week`);
  }
  const request = hash('sha256', text, 'hex');
  if (heads.done[request] !== undefined) {
    throw new SyntaxError('the request was carried out before');
  }
  const [first] = opened.by;
  return { ...(first && { by: first.vkey }), request };
}
