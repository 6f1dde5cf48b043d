// A scripted service's moods: what stands before it and loses requests or answers. What the service itself refuses and
// cuts, it does in every mood.

import type { HttpAnswer, ReceivedRequest } from '../../support/http-receiver.ts';
import { failures, type Mood } from './receiver.ts';

/** Answers a request itself, or with what `pass` says, which it may also keep back. */
export type Interference = (request: ReceivedRequest, pass: () => HttpAnswer) => HttpAnswer;

/**
 * The effect of a mood on requests. `isTooMany`: requests that a mixed receiver answers with 413; `fail` is called for
 * each request that is answered unlike the service.
 */
export function moody(
  mood: Mood,
  about: {
    readonly random: () => number;
    readonly fail: () => void;
    readonly isTooMany: (request: ReceivedRequest) => boolean;
  },
): Interference {
  const { random, fail, isTooMany } = about;
  return (request, pass) => {
    if (mood === 'mute') return { answer: 'hang' };
    if (mood === 'mixed' && isTooMany(request)) return { answer: 'reply', status: 413 };
    if ((mood !== 'shaky' && mood !== 'mixed') || random() >= 0.5) return pass();
    fail();
    if (random() < 0.3) pass(); // taken, and yet the answer is lost
    return failures[Math.floor(random() * failures.length)] ?? { answer: 'reset' };
  };
}
