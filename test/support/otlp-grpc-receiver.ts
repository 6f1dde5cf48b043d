// An OTLP/gRPC logs receiver: the server of @grpc/grpc-js, with the decoder of the tests, which responds as scripted:
// with any status, a partial success, or not at all. Receivers accept 4 MB a message by default, and so does this one.
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import type { Certificates } from './certificates.ts';
import { decodeProtobuf, encodePartialSuccess } from './otlp-protobuf.ts';
import { type OtlpRecord, recordsOf } from './otlp-records.ts';
import { afterThisTest } from './temp.ts';

/** What is answered to a call; `null`: nothing, the call stays open. */
export type GrpcAnswer =
  | { readonly code: number; readonly details: string; readonly retryAfterS?: number }
  | { readonly rejected: number; readonly message: string }
  | 'accept'
  | null;

export interface GrpcCall {
  readonly records: readonly OtlpRecord[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

export interface OtlpGrpcOptions {
  readonly tls?: Certificates;
  readonly clientCertificates?: boolean;
  readonly answer?: (call: GrpcCall) => GrpcAnswer;
}

/** A running receiver. It ends with the test that started it. */
export interface OtlpGrpcReceiver {
  /** `http://127.0.0.1:port`, or https. */
  readonly url: string;
  readonly calls: readonly GrpcCall[];
  /** Records of the calls that were answered OK. */
  readonly records: readonly OtlpRecord[];
  answer(how: (call: GrpcCall) => GrpcAnswer): void;
  close(): void;
}

const path = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';

/** Starts a receiver on a free loopback port; it accepts everything by default. */
export async function startOtlpGrpcReceiver(
  options: OtlpGrpcOptions = {},
): Promise<OtlpGrpcReceiver> {
  const calls: GrpcCall[] = [];
  const records: OtlpRecord[] = [];
  let answer = options.answer ?? (() => 'accept' as GrpcAnswer);
  const server = new Server();
  const same = (bytes: Buffer) => bytes;
  const definition = {
    export: {
      ...{ path, requestStream: false, responseStream: false },
      ...{ requestSerialize: same, requestDeserialize: same },
      ...{ responseSerialize: same, responseDeserialize: same },
    },
  };
  server.addService(definition, {
    export: (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const decoded = recordsOf(decodeProtobuf('ExportLogsServiceRequest', call.request));
      const seen = {
        records: decoded,
        metadata: call.metadata.getMap(),
        body: call.request,
      };
      calls.push(seen);
      const how = answer(seen);
      if (how === null) return;
      if (how === 'accept' || 'rejected' in how) {
        records.push(...decoded);
        const said = how === 'accept' ? [] : encodePartialSuccess(how.rejected, how.message);
        reply(null, Buffer.from(said));
      } else {
        reply({ code: how.code, details: how.details, metadata: detailsOf(how) });
      }
    },
  });
  const { tls } = options;
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(
          Buffer.from(tls.ca),
          [{ private_key: Buffer.from(tls.server.key), cert_chain: Buffer.from(tls.server.cert) }],
          options.clientCertificates ?? false,
        );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const close = () => server.forceShutdown();
  afterThisTest(close);
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  return {
    ...{ url, calls, records, close },
    answer: (how) => {
      answer = how;
    },
  };
}

/** google.rpc.Status with a DebugInfo, a RetryInfo in seconds, and another detail after it. */
function detailsOf({ code, retryAfterS }: { code: number; retryAfterS?: number }): Metadata {
  const metadata = new Metadata();
  if (retryAfterS === undefined) return metadata;
  const seconds = Math.floor(retryAfterS);
  const nanos = Math.round((retryAfterS - seconds) * 1e9);
  const duration = Buffer.concat([varintField(1, seconds), varintField(2, nanos)]);
  const any = (type: string, value: Buffer) =>
    field(
      3,
      Buffer.concat([
        field(1, Buffer.from(`type.googleapis.com/google.rpc.${type}`)),
        field(2, value),
      ]),
    );
  const detail = [
    varintField(1, code),
    any('DebugInfo', field(2, Buffer.from('x'))),
    any('RetryInfo', field(1, duration)),
    any('Help', Buffer.alloc(0)),
  ];
  metadata.set('grpc-status-details-bin', Buffer.concat(detail));
  return metadata;
}

function varintField(number: number, value: number): Buffer {
  return Buffer.concat([Buffer.of(number << 3), varint(value)]);
}

function field(number: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.of((number << 3) | 2), varint(value.length), value]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}

/** The codes of gRPC. */
export { status as grpcStatus };
