// A receiver of posts (OTLP or plain HTTP) as a torture run breaks it. It keeps what it truly took: only records of a
// request that it answered as accepted, and of a request taken in part only that part. Everything else counts as not
// arrived, however it was answered.

import type { HttpAnswer } from '../support/http-receiver.ts';
import { Arrivals } from './arrivals.ts';
import type { Signs } from './signs.ts';

/** One record of a request. */
export interface Arrival {
  readonly uid: string;
  /** The whole record, without `raw`: for comparing. */
  readonly content: string;
  /** The record as sent by upstream. */
  readonly raw: string;
}

/** How a receiver answers. `partly` exists for OTLP alone. */
export type PostMode =
  | 'accept'
  | 'reset'
  | 'hang'
  | 'cut'
  | 'late'
  | 'throttle'
  | 'unavailable'
  | 'unauthorised'
  | 'web_page'
  | 'small_only'
  | 'poison'
  | 'partly';

/** What is to be answered; `partly` says how many records were rejected. */
export type PostAnswer =
  | { readonly answer: 'accept' }
  | { readonly answer: 'partly'; readonly rejected: number; readonly message: string }
  | HttpAnswer;

const lateMs = 700;
const recordsMax = 20;

/** What a receiver of posts has, and how it answers. */
export class Posts {
  readonly arrived = new Arrivals();
  /** By uid the record as sent by upstream. */
  readonly raws = new Map<string, string>();
  mode: PostMode = 'accept';
  /** Requests so far, however answered. */
  requests = 0;
  readonly #name: string;
  readonly #signs: Signs;

  constructor(name: string, signs: Signs) {
    this.#name = name;
    this.#signs = signs;
  }

  /** Answers one request, and notifies listeners before and after the response. */
  async take(records: readonly Arrival[]): Promise<PostAnswer> {
    this.requests += 1;
    this.#signs.give(`${this.#name} received`);
    if (this.mode === 'late') await new Promise((resolve) => setTimeout(resolve, lateMs));
    const answer = answerOf(this.mode, records);
    const taken = takenOf(answer, records);
    const atMs = performance.now();
    for (const { uid, content, raw } of taken) {
      this.arrived.take(uid, content, atMs);
      this.raws.set(uid, raw);
    }
    // The answer is on its way once this turn of the loop is over.
    setImmediate(() => this.#signs.give(`${this.#name} answered`));
    return answer;
  }
}

function takenOf(answer: PostAnswer, records: readonly Arrival[]): readonly Arrival[] {
  switch (answer.answer) {
    case 'accept':
      return records;
    case 'partly':
      return records.slice(answer.rejected);
    case 'reply':
    case 'reset':
    case 'cut':
    case 'hang':
      return [];
  }
}

function answerOf(mode: PostMode, records: readonly Arrival[]): PostAnswer {
  const reply = (status: number, headers: Readonly<Record<string, string>> = {}, body = '') =>
    ({ answer: 'reply', status, headers, body }) as const;
  switch (mode) {
    case 'accept':
    case 'late':
      return { answer: 'accept' };
    case 'reset':
    case 'hang':
    case 'cut':
      return { answer: mode };
    case 'throttle':
      return reply(429, { 'retry-after': '1' });
    case 'unavailable':
      return reply(503);
    case 'unauthorised':
      return reply(401);
    case 'web_page':
      // 407 and not 200: to a plain HTTP sink any 2xx is an acknowledgement.
      return reply(407, { 'content-type': 'text/html' }, '<html>sign in</html>');
    case 'small_only':
      return records.length > recordsMax ? reply(413) : { answer: 'accept' };
    case 'poison':
      return records.some(({ uid }) => isPoison(uid)) ? reply(400) : { answer: 'accept' };
    case 'partly':
      return records.length === 0
        ? { answer: 'accept' }
        : { answer: 'partly', rejected: Math.ceil(records.length / 2), message: 'too busy' };
  }
}

/** About one record in 64 is one that a receiver in this mood refuses for good. */
function isPoison(uid: string): boolean {
  return (
    uid.startsWith('00') || uid.startsWith('a7') || uid.startsWith('5c') || uid.startsWith('e1')
  );
}
