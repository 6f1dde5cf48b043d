// Syslog over UDP (RFC 5426), one message per datagram, through syslog-client. The library would
// build RFC 3164 or 5424 headers of its own, without structured data and without escaping; because
// sluice's messages are complete, its one method for that is overridden to send them unchanged. The
// arrival of a datagram cannot be confirmed: only this machine's kernel reports errors.

import { lookup } from 'node:dns/promises';
import type { Batch, Delivery, Refusal } from '../../../src/contracts/index.ts';
import { lineAt } from '../../shared/lines.ts';
import type { Address } from './address.ts';
import { connectFailure } from './failures.ts';

/** Payload of the largest IPv4 datagram. */
export const datagramBytesMax = 65_507;

// Datagrams given to the kernel before its results are awaited: bounds memory, and lets the
// receiver's small buffer (200 KiB on Linux by default) drain between two waves.
const waveMax = 64;

/** A sender of datagrams to one receiver. */
export interface Datagrams {
  send(batch: Batch, signal: AbortSignal): Promise<Delivery>;
  /** Resolves when the kernel has everything sent before. */
  ready(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The used part of syslog-client. */
interface MessageClient {
  /** Sends the bytes as one datagram; resolves to null, or to the kernel's error. */
  sendMessage(bytes: Uint8Array): Promise<Error | null>;
  close(): unknown;
}

/** Creates the sender; the name is resolved at each batch. */
export function openDatagrams(address: Address): Datagrams {
  let open: { readonly ip: string; readonly client: MessageClient } | null = null;
  let turn: Promise<unknown> = Promise.resolve();

  const sendOne = async (batch: Batch, signal: AbortSignal): Promise<Delivery> => {
    signal.throwIfAborted();
    try {
      const { address: ip } = await lookup(address.host);
      if (open?.ip !== ip) {
        open?.client.close();
        open = { ip, client: await messageClient(ip, address.port) };
      }
    } catch (error) {
      return { outcome: 'retry', cause: connectFailure(address, error) };
    }
    return sendAll(open.client, batch, { address, signal });
  };
  return {
    // One batch after the other, so that the bound of a wave bounds all.
    send(batch, signal) {
      const answer = turn.then(() => sendOne(batch, signal));
      turn = answer.catch(() => undefined);
      return answer;
    },
    async ready() {
      await turn;
    },
    async close() {
      await turn;
      open?.client.close();
      open = null;
    },
  };
}

async function messageClient(ip: string, port: number): Promise<MessageClient> {
  const { Client, Transport } = (await import('syslog-client')).default;
  class CompleteMessages extends Client {
    #bytes: Buffer = Buffer.alloc(0);

    sendMessage(bytes: Uint8Array): Promise<Error | null> {
      return new Promise((resolve) => {
        // The library accepts only text, and calls the method below before log() returns.
        this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
        this.log('', {}, (error) => resolve(error ?? null));
      });
    }

    override buildFormattedMessage(): Buffer {
      return this.#bytes;
    }
  }
  // `appName` is not used; without it the library would read the process title.
  const client = new CompleteMessages(ip, { port, transport: Transport.Udp, appName: 'sluice' });
  // The message's callback reports the same; without a listener the process would end.
  client.on('error', () => {});
  return client;
}

async function sendAll(
  client: MessageClient,
  { events, lines }: Batch,
  { address, signal }: { readonly address: Address; readonly signal: AbortSignal },
): Promise<Delivery> {
  const refused: Refusal[] = [];
  const again: string[] = [];
  let failure: Error | null = null;
  for (let first = 0; first < lines.length; first += waveMax) {
    signal.throwIfAborted();
    const wave = events.slice(first, first + waveMax);
    const answers = await Promise.all(
      wave.map((_, i) => {
        const bytes = lineAt(lines, first + i);
        return bytes.length > datagramBytesMax ? tooLarge(bytes) : client.sendMessage(bytes);
      }),
    );
    for (const [i, error] of answers.entries()) {
      const uid = wave[i]?.uid;
      if (error === null || uid === undefined) continue;
      if (/EMSGSIZE/.test(error.message))
        refused.push({ uid, reason: sizeReason(lineAt(lines, first + i)), by: 'sink' });
      else again.push(uid);
      failure = error;
    }
  }
  if (failure === null) return { outcome: 'delivered' };
  if (again.length === events.length) {
    return { outcome: 'retry', cause: connectFailure(address, withCode(failure)) };
  }
  return { outcome: 'partly', refused, again };
}

async function tooLarge(bytes: Uint8Array): Promise<Error> {
  return new Error(`EMSGSIZE: ${bytes.length} bytes`);
}

function sizeReason(bytes: Uint8Array): string {
  return `a message of ${bytes.length} bytes is too large for a datagram; lower max_message, or use tcp:// or tls://`;
}

// The library keeps the text of the system's error, `send ENETUNREACH 192.0.2.1:514`, and drops its
// code.
function withCode(error: Error): Error & { code: string } {
  const code = /\b(E[A-Z]{3,})\b/.exec(error.message)?.[1] ?? 'unknown';
  return Object.assign(error, { code });
}
