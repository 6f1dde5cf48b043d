// OTLP over gRPC (OTLP specification, "OTLP/gRPC"; grpc/doc/statuscodes.md): LogsService/Export as
// one unary call, by @grpc/grpc-js, which is loaded only if a sink needs it. The library makes the
// connection and nothing else: retries are the engine's. Invariant: a call counts only if its
// status is OK, and any status that leaves a doubt keeps the events in the spool.

import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext, type PeerCertificate } from 'node:tls';
import type { ChannelCredentials, Client, Metadata, ServiceError } from '@grpc/grpc-js';
import {
  asExportError,
  type Clock,
  type ErrorCode,
  ExportError,
  errorText,
  type HttpResponse,
  headerValue,
  type Secret,
  type TlsFileKey,
  type TlsSettings,
  tlsFaults,
} from '../../../src/contracts/index.ts';
import { credentialAdvice, type HttpReceiver, type PostAnswer } from '../../shared/http-post.ts';
import { blotted, plainLine } from '../../shared/receiver-words.ts';
import { readRetryDelayMs } from './answer.ts';

const method = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';
// The response size that OTLP allows.
const answerBytesMax = 4 * 1024 * 1024;
const heldNext = 'Nothing was lost: the events stay held and are sent again by themselves.';

type Library = typeof import('@grpc/grpc-js');

interface Opened {
  readonly library: Library;
  readonly client: Client;
}

/** The logs service of one receiver. */
export class GrpcLogs {
  readonly #receiver: HttpReceiver;
  readonly #doing: string;
  readonly #clock: Clock;
  #opened: Opened | null = null;

  constructor(receiver: HttpReceiver, doing: string, clock: Clock) {
    this.#receiver = receiver;
    this.#clock = clock;
    this.#doing = `${doing}: ${new URL(receiver.url).host}`;
  }

  /** Calls once, with this token if there is one. Rejects only when the signal aborts. */
  async export(
    body: Uint8Array,
    signal: AbortSignal,
    authorization: Secret | null = null,
  ): Promise<PostAnswer> {
    try {
      this.#opened ??= await open(this.#receiver);
      const headers = { ...this.#receiver.headers, ...(authorization && { authorization }) };
      return await this.#call(this.#opened, { body, headers: revealed({ headers }) }, signal);
    } catch (error) {
      signal.throwIfAborted();
      return { outcome: 'retry', cause: asExportError(error, this.#doing) };
    }
  }

  /** Closes the connection. */
  close(): void {
    this.#opened?.client.close();
    this.#opened = null;
  }

  #call(
    { library, client }: Opened,
    { body, headers }: { readonly body: Uint8Array; readonly headers: Record<string, string> },
    signal: AbortSignal,
  ): Promise<PostAnswer> {
    signal.throwIfAborted();
    const metadata = new library.Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const blot = (said: Uint8Array) => {
      const response = { status: 200, headers: {}, body: said };
      return blotted(response, this.#receiver.url, headers).body;
    };
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const same = (message: Buffer) => message;
    const options = { deadline: this.#clock.now() + this.#receiver.timeout };
    return new Promise((resolve, reject) => {
      const call = client.makeUnaryRequest(
        ...([method, same, same, bytes, metadata, options] as const),
        (error: ServiceError | null, answer?: Buffer) => {
          signal.removeEventListener('abort', abort);
          if (signal.aborted) reject(signal.reason);
          else if (error !== null) resolve(this.#failed(error, blot, library));
          else resolve({ outcome: 'accepted', response: asResponse(answer), blot });
        },
      );
      const abort = () => call.cancel();
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  #failed(
    { code, details, metadata }: Pick<ServiceError, 'code' | 'details' | 'metadata'>,
    blot: (said: Uint8Array) => Uint8Array,
    { status }: Library,
  ): Exclude<PostAnswer, { readonly outcome: 'accepted' }> {
    const reported = plainLine(Buffer.from(blot(Buffer.from(details))).toString());
    const said = reported.replace(/ Resolution note:$/, '');
    const isAnswer = !said.startsWith('No connection established');
    const what = isAnswer ? ` answered ${status[code]}: ${said}` : `: ${said}`;
    const failure = (errorCode: ErrorCode, next: string) =>
      new ExportError(errorCode, `${this.#doing}${what}`, {
        next,
        details: { grpc_status: code },
      });
    const ofSink = (next: string) =>
      ({ outcome: 'refused', scope: 'sink', cause: failure('sink_refused', next) }) as const;
    switch (code) {
      case status.INVALID_ARGUMENT: {
        const next =
          'See why in the receiver’s log; an event that is refused by itself becomes a dead letter, and the rest is delivered.';
        return { outcome: 'refused', scope: 'batch', cause: failure('record_refused', next) };
      }
      case status.UNAUTHENTICATED:
      case status.PERMISSION_DENIED:
        return ofSink(`${credentialAdvice(401, this.#receiver)} Nothing was lost.`);
      case status.UNIMPLEMENTED:
      case status.NOT_FOUND:
        return ofSink('Check that url is the gRPC port of an OTLP receiver; nothing was lost.');
      case status.RESOURCE_EXHAUSTED:
        // By text only: gRPC has one status for a full receiver and for a large message.
        if (/\b(larger|exceeds|too large|max)\b/i.test(details) && /message|size/i.test(details)) {
          const next = 'It was sent in halves; a smaller batch.bytes saves the second call.';
          return { outcome: 'too_large', cause: failure('record_refused', next) };
        }
        return this.#again(
          failure('sink_throttled', `The receiver limits the rate. ${heldNext}`),
          metadata,
        );
      case status.INTERNAL: {
        const next = `Check the receiver’s log: a Collector responds like that if its pipeline refuses for good. ${heldNext}`;
        return this.#again(failure('sink_unreachable', next), metadata);
      }
      default: {
        // Closing makes the next call use a renewed certificate and resolve the name again.
        if (code === status.UNAVAILABLE) this.close();
        const next = `Check that the receiver runs and listens there, and its certificate. ${heldNext}`;
        return this.#again(failure('sink_unreachable', next), metadata);
      }
    }
  }

  #again(cause: ExportError, metadata: Metadata): Extract<PostAnswer, { outcome: 'retry' }> {
    const [status] = metadata.get('grpc-status-details-bin');
    const afterMs = typeof status === 'object' ? readRetryDelayMs(status) : undefined;
    return { outcome: 'retry', cause, ...(afterMs !== undefined && { afterMs }) };
  }
}

async function open({ url, tls, compression }: HttpReceiver): Promise<Opened> {
  const library = await import('@grpc/grpc-js').catch((error) => {
    throw new ExportError('sink_refused', `loading gRPC: ${errorText(error)}`, {
      next: 'Install the optional packages beside sluice (npm ci without --omit=optional); nothing was lost.',
      cause: error,
    });
  });
  const { protocol, hostname, port } = new URL(url);
  const isSecure = protocol === 'https:';
  const credentials = isSecure
    ? await secured(library, tls ?? {}, hostname)
    : library.credentials.createInsecure();
  // The library would send an address as SNI, which holds names only (RFC 6066, section 3) and
  // which Node rejects; `secured` decides the name that the certificate must have.
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  const serverName = tls?.server_name ?? (isSecure && isAddress ? 'address.invalid' : undefined);
  const host = `${hostname}:${port || (isSecure ? 443 : 80)}`;
  const client = new library.Client(
    hostname.startsWith('[') ? `ipv6:${host}` : `dns:${host}`,
    credentials,
    {
      'grpc.max_send_message_length': -1,
      'grpc.max_receive_message_length': answerBytesMax,
      'grpc.enable_retries': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
      ...(compression === 'gzip' && {
        'grpc.default_compression_algorithm': library.compressionAlgorithms.gzip,
      }),
      ...(serverName !== undefined && { 'grpc.ssl_target_name_override': serverName }),
    },
  );
  return { library, client };
}

async function secured(
  { credentials }: Library,
  { ca_file, cert_file, key_file, min_version, server_name }: TlsSettings,
  hostname: string,
): Promise<ChannelCredentials> {
  const files: Partial<Record<TlsFileKey, Buffer>> = {};
  try {
    const read = async (file?: string) => (file === undefined ? undefined : await readFile(file));
    const [ca, cert, key] = await Promise.all([read(ca_file), read(cert_file), read(key_file)]);
    Object.assign(files, { ca_file: ca, cert_file: cert, key_file: key });
    const context = createSecureContext({
      minVersion: min_version ?? 'TLSv1.2',
      ...(ca && { ca }),
      ...(cert && { cert }),
      ...(key && { key }),
    });
    const name = server_name ?? hostname.replace(/^\[|\]$/g, '');
    return credentials.createFromSecureContext(context, {
      checkServerIdentity: (_: string, certificate: PeerCertificate) =>
        checkServerIdentity(name, certificate),
    });
  } catch (error) {
    const [fault] = tlsFaults(files);
    const why = fault === undefined ? errorText(error) : `tls.${fault.key} ${fault.message}`;
    throw new ExportError('config_invalid', `reading the files of tls: ${why}`, {
      next: 'Name PEM files that this user can read; they are read again at each connection.',
      cause: error,
    });
  }
}

function revealed({ headers }: Pick<HttpReceiver, 'headers'>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [
      name.toLowerCase(),
      headerValue(value, `the header ${name}`),
    ]),
  );
}

function asResponse(body: Uint8Array = new Uint8Array(0)): HttpResponse {
  return { status: 200, headers: { 'content-type': 'application/x-protobuf' }, body };
}
