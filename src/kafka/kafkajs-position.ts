// Reads a sink's committed position with kafkajs 2.2.4. Kafkajs knows only older versions of the request, which answer with
// the position before the last one while a broker still applies a transaction that it has committed. So the request of
// version 7 is encoded here (OffsetFetch, https://kafka.apache.org/protocol.html; KIP-447). Invariant: a position is never
// older than a transaction that was committed before the request.

import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster, GroupCoordinator } from './kafkajs-requests.ts';
import type { CommittedPosition } from './port.ts';

const load = createRequire(import.meta.url);
const offsetFetch = 9;
const version = 7;
// A broker that has committed a transaction applies its offsets within milliseconds. The pauses add up to about six seconds.
const pauseMsMin = 5;
const pauseMsMax = 1_000;
const repeatsMax = 13;

/** The used parts of kafkajs's encoder. */
interface Encoder {
  writeInt8(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
}

/** The used parts of kafkajs's decoder. */
interface Decoder {
  readInt16(): number;
  readInt32(): number;
  readInt64(): { toString(): string };
  readUVarIntString(): string | null;
  readUVarIntArray<T>(read: (decoder: Decoder) => T): readonly T[] | null;
  readTaggedFields(): unknown;
}

/** A response of version 7, as far as one partition needs it. */
interface Fetched {
  /** kafkajs delays the next request by so many milliseconds. */
  readonly clientSideThrottleTime: number;
  readonly errorCodes: readonly number[];
  readonly position: CommittedPosition | null;
}

/**
 * The committed position of a group in partition 0 of a topic; null: there is none. Waits while a transaction with a position is
 * not applied. Rejects with kafkajs's error.
 */
export async function fetchPosition(
  cluster: Cluster,
  { group, topic }: { readonly group: string; readonly topic: string },
): Promise<CommittedPosition | null> {
  for (let repeats = 0; ; repeats += 1) {
    try {
      const coordinator = await cluster.findGroupCoordinator({ groupId: group });
      return (await sent(coordinator, requestFor(group, topic))).position;
    } catch (error) {
      const { retriable, type } = error as { readonly retriable?: boolean; readonly type?: string };
      if (retriable !== true || repeats === repeatsMax) throw error;
      await delay(Math.min(pauseMsMin * 2 ** repeats, pauseMsMax));
      if (type !== 'UNSTABLE_OFFSET_COMMIT') await cluster.refreshMetadata().catch(() => undefined);
    }
  }
}

async function sent(coordinator: GroupCoordinator, request: object): Promise<Fetched> {
  const hidden = Object.getOwnPropertySymbols(Object.getPrototypeOf(coordinator)).find(
    ({ description }) => description === 'private:Broker:sendRequest',
  );
  const send = coordinator[hidden ?? Symbol()];
  if (send === undefined) throw new Error('this kafkajs sends its requests in another way');
  const response = { decode: async (bytes: Buffer) => decoded(bytes), parse };
  return (await send.call(coordinator, { request, response })) as Fetched;
}

function requestFor(group: string, topic: string): object {
  const NewEncoder = load('kafkajs/src/protocol/encoder') as new () => Encoder;
  const encode = async () =>
    new NewEncoder()
      // The header has no tagged fields.
      .writeUVarInt(0)
      .writeUVarIntString(group)
      // One topic, with partition 0; a compact array has its length plus one.
      .writeUVarInt(2)
      .writeUVarIntString(topic)
      .writeUVarInt(2)
      .writeInt32(0)
      .writeUVarInt(0)
      // require_stable
      .writeInt8(1)
      .writeUVarInt(0);
  return { apiKey: offsetFetch, apiVersion: version, apiName: 'OffsetFetch', encode };
}

function decoded(bytes: Buffer): Fetched {
  const NewDecoder = load('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => Decoder;
  const decoder = new NewDecoder(bytes);
  decoder.readTaggedFields();
  const clientSideThrottleTime = decoder.readInt32();
  const topics = decoder.readUVarIntArray((ofTopic) => {
    ofTopic.readUVarIntString();
    const partitions = ofTopic.readUVarIntArray((one) => {
      one.readInt32();
      const position = Number(one.readInt64().toString());
      one.readInt32();
      const note = one.readUVarIntString() ?? '';
      const errorCode = one.readInt16();
      one.readTaggedFields();
      return { position, note, errorCode };
    });
    ofTopic.readTaggedFields();
    return partitions ?? [];
  });
  const [found] = topics?.flat() ?? [];
  const errorCodes = [decoder.readInt16(), found?.errorCode ?? 0];
  if (found === undefined || found.position < 0) {
    return { clientSideThrottleTime, errorCodes, position: null };
  }
  const { position, note } = found;
  return { clientSideThrottleTime, errorCodes, position: { position, note } };
}

async function parse(fetched: Fetched): Promise<Fetched> {
  const { createErrorFromCode, failure } = load('kafkajs/src/protocol/error') as {
    failure(code: number): boolean;
    createErrorFromCode(code: number): Error;
  };
  const code = fetched.errorCodes.find(failure);
  if (code !== undefined) throw createErrorFromCode(code);
  return fetched;
}
