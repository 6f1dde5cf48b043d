// Requests time stamps for checkpoints from a time-stamp authority (RFC 3161, over HTTP as in section 3.4). The whole
// response is stored, including its certificates, because they are unavailable after their expiry. `openssl ts -verify
// -data SIZE.note -in SIZE.tsr -CAfile CA.pem` checks it.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ExportError, errorText, type HttpClient, type Secret } from '../../contracts/index.ts';
import type { Anchor } from './anchors.ts';
import { authoritiesIn, checkStamp, stampQuery } from './time-stamp.ts';

/** The configured authority. */
export interface StampSettings {
  readonly url: string;
  /** PEM file of the trusted root authorities of its stamps. */
  readonly ca_file: string;
  /** Minimum time between two stamps, milliseconds. */
  readonly every: number;
  readonly proxy?: Secret | undefined;
}

const timeoutMs = 15_000;
const answerBytesMax = 256 * 1024;
const nonceBytes = 16;
const goesOn =
  'Check tsa.url and tsa.ca_file. The archive continues; the next checkpoint is stamped when the authority responds.';

/** The authority as an anchor. */
export function timeStamper(settings: StampSettings, http: HttpClient): Anchor {
  return {
    kind: 'tsr',
    everyMs: settings.every,
    async ask({ note }, signal) {
      try {
        return { proof: await stamped(note, settings, { http, signal }), failures: [] };
      } catch (error) {
        signal.throwIfAborted();
        const { host } = new URL(settings.url);
        const what = `requesting a stamp from the time-stamp authority ${host}: ${errorText(error)}`;
        const failure = new ExportError('sink_unreachable', what, { next: goesOn, cause: error });
        return { proof: null, failures: [failure] };
      }
    },
    check: (proof, { note }) => {
      const authorities = authoritiesIn(readFileSync(settings.ca_file, 'utf8'));
      checkStamp(proof, note, { authorities });
    },
  };
}

async function stamped(
  note: Uint8Array,
  { url, ca_file: caFile, proxy }: StampSettings,
  { http, signal }: { readonly http: HttpClient; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const authorities = authoritiesIn(readFileSync(caFile, 'utf8'));
  const nonce = randomBytes(nonceBytes);
  const { status, body } = await http.request(
    {
      method: 'POST',
      url,
      headers: { 'content-type': 'application/timestamp-query' },
      body: stampQuery(note, nonce),
      ...(proxy === undefined ? {} : { proxy: proxy.reveal() }),
      timeoutMs,
      bodyBytesMax: answerBytesMax,
    },
    signal,
  );
  if (status !== 200) throw new SyntaxError(`it answered ${status}`);
  checkStamp(body, note, { authorities, nonce });
  return body;
}
