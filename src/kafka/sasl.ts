// SASL identities, as both clients use them: by password, or by a token (OAUTHBEARER, RFC 7628). Invariant: a rejected
// token is reported as a rejection. A broker answers it with a success that carries its reason (RFC 7628, section
// 3.2.2), which neither client reads.

import type { KafkaSasl } from './port.ts';

/** What the broker wrote is quoted up to this length. */
const reasonLengthMax = 100;

/** Rejects with the ExportError that explains why there is no password or token. */
export async function readableSasl(sasl: KafkaSasl | undefined): Promise<void> {
  if (sasl?.mechanism === 'oauthbearer') await sasl.token();
  else sasl?.password.reveal();
}

/** The client's first message: RFC 7628, section 3.1, without an authorization identity. */
export function bearerMessage(token: string): Buffer {
  return Buffer.from(`n,,\x01auth=Bearer ${token}\x01\x01`);
}

/** The error text for the broker's reply to a token; null: it accepted the token. */
export function rejectionIn(reply: Uint8Array | null): string | null {
  const text = Buffer.from(reply ?? []).toString('utf8');
  if (text === '') return null;
  const reason = text.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, reasonLengthMax);
  return `the broker rejected the token: ${reason}`;
}
