// An HTTP server as the receiver of the http sink, and one that understands OTLP as that of the otlp sink.

import type { Uid } from '../../../src/contracts/event.ts';
import {
  type HttpAnswer,
  type HttpReceiver,
  type ReceivedRequest,
  startHttpReceiver,
} from '../../support/http-receiver.ts';
import { grpcStatus, startOtlpGrpcReceiver } from '../../support/otlp-grpc-receiver.ts';
import { startOtlpReceiver } from '../../support/otlp-receiver.ts';
import {
  failures,
  type Mood,
  type Receiver,
  type ReceiverKind,
  refusedText,
  uidsIn,
} from './receiver.ts';

const ok: HttpAnswer = { answer: 'reply', status: 200 };
const eventsMax = 4;

/** The receiver of the http sink, for one form of body. */
export function httpKind(body: 'lines' | 'array'): ReceiverKind {
  return {
    type: 'http',
    name: `http (${body})`,
    unable: {},
    async start(mood, random): Promise<Receiver> {
      const receiver = await startHttpReceiver();
      const taken: Uid[] = [];
      let failed = 0;
      const requests: { id: string; uids: readonly Uid[] }[] = [];
      receiver.answer((request) => {
        const uids = uidsOf(request);
        requests.push({ id: request.headers['idempotency-key'] ?? '', uids });
        return answerTo(request.body.toString(), {
          ...{ mood, random, count: uids.length },
          take: () => taken.push(...uids),
          fail: () => (failed += 1),
        });
      });
      await leaveIf(mood, receiver);
      const config = { url: receiver.url, body, timeout: mood === 'mute' ? '300ms' : '5s' };
      return { config, requests, arrived: () => taken, failures: () => failed };
    },
  };
}

/** The receiver of the otlp sink. Its partial success is not here: it leaves open what arrived (otlp.test.ts). */
export const otlpKind: ReceiverKind = {
  type: 'otlp',
  name: 'otlp',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const receiver = await startOtlpReceiver();
    const taken: Uid[] = [];
    let failed = 0;
    receiver.answer((request) => {
      const uids = request.records.map(({ attributes }) => String(attributes['log.record.uid']));
      const answer = answerTo(request.body.toString('latin1'), {
        ...{ mood, random, count: uids.length },
        take: () => taken.push(...uids),
        fail: () => (failed += 1),
      });
      return answer === ok ? { answer: 'accept' } : answer;
    });
    await leaveIf(mood, receiver);
    const config = { url: receiver.url, timeout: mood === 'mute' ? '300ms' : '5s' };
    return { config, arrived: () => taken, failures: () => failed };
  },
};

/** The receiver of the otlp sink over gRPC. */
export const otlpGrpcKind: ReceiverKind = {
  type: 'otlp',
  name: 'otlp (grpc)',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const taken: Uid[] = [];
    let failed = 0;
    const receiver = await startOtlpGrpcReceiver({
      answer({ records, body }) {
        const uids = records.map(({ attributes }) => String(attributes['log.record.uid']));
        const answer = answerTo(body.toString('latin1'), {
          ...{ mood, random, count: uids.length },
          take: () => taken.push(...uids),
          fail: () => (failed += 1),
        });
        return answer === ok ? 'accept' : grpcAnswers[mood === 'mute' ? 'mute' : statusOf(answer)];
      },
    });
    if (mood === 'away') receiver.close();
    const timeout = mood === 'mute' ? '300ms' : '60s';
    const config = { url: receiver.url, protocol: 'grpc', timeout };
    return { config, arrived: () => taken, failures: () => failed };
  },
};

const grpcAnswers = {
  mute: null,
  large: { code: grpcStatus.RESOURCE_EXHAUSTED, details: 'Received message larger than max' },
  refused: { code: grpcStatus.INVALID_ARGUMENT, details: 'not this one' },
  failed: { code: grpcStatus.UNAVAILABLE, details: 'not now' },
} as const;

function statusOf(answer: HttpAnswer): 'large' | 'refused' | 'failed' {
  if (answer.answer !== 'reply') return 'failed';
  return answer.status === 413 ? 'large' : answer.status === 400 ? 'refused' : 'failed';
}

function uidsOf(request: ReceivedRequest): readonly Uid[] {
  return uidsIn(request.body.toString());
}

async function leaveIf(mood: Mood, receiver: Pick<HttpReceiver, 'close'>): Promise<void> {
  if (mood === 'away') await receiver.close();
}

function answerTo(
  body: string,
  about: {
    mood: Mood;
    random: () => number;
    count: number;
    take: () => void;
    fail: () => void;
  },
): HttpAnswer {
  const { mood, random, count, take, fail } = about;
  if (mood === 'mute') return { answer: 'hang' };
  const tooLarge = mood === 'mixed' && count > eventsMax;
  const refused = (mood === 'picky' || mood === 'mixed') && body.includes(refusedText);
  if ((mood === 'shaky' || mood === 'mixed') && random() < 0.5) {
    fail();
    if (!tooLarge && !refused && random() < 0.3) take(); // taken, and yet the answer is lost
    return failures[Math.floor(random() * failures.length)] ?? ok;
  }
  if (tooLarge) return { answer: 'reply', status: 413 };
  if (refused) return { answer: 'reply', status: 400 };
  take();
  return ok;
}
