// One request to a collector and its response, by status and by code. The cookies of each response
// are sent with the next request.

import type { Tools } from '../../../src/contracts/index.ts';
import { type HttpReceiver, type PostAnswer, postOnce } from '../../shared/http-post.ts';
import { type HecAnswer, judgeHec, readHecAnswer } from './answer.ts';
import type { Cookies } from './cookies.ts';

/** Input of a request. */
export interface HecRequestContext {
  readonly receiver: HttpReceiver;
  readonly body: Uint8Array;
  readonly channel: string;
  readonly cookies: Cookies;
  /** Start of every error message. */
  readonly doing: string;
  readonly tools: Tools;
  readonly signal: AbortSignal;
  /** The index that an event of the body is for, for error messages. */
  readonly indexOf?: (place: number) => string;
  /** True if the events of the sink are for several indexes. */
  readonly hasIndexes?: boolean;
}

/** The response. */
export interface Said {
  readonly answer: PostAnswer;
  /** Null: not a collector's response, or one about acknowledgements. */
  readonly said: HecAnswer | null;
  readonly cookies: string | undefined;
}

/** Sends one request. Rejects only when the signal aborts. */
export async function requestCollector(request: HecRequestContext): Promise<Said> {
  const { receiver, body, channel, cookies, indexOf, hasIndexes, ...context } = request;
  const headers = {
    'content-type': 'application/json',
    'x-splunk-request-channel': channel,
    ...cookies.headers,
  };
  let said: HecAnswer | null = null;
  let given: string | undefined;
  const answer = await postOnce(
    receiver,
    { body, headers },
    {
      ...context,
      judge(response, failure) {
        said = readHecAnswer(response.body);
        given = response.headers['set-cookie'];
        return judgeHec(response, failure, indexOf, hasIndexes);
      },
    },
  );
  if (answer.outcome !== 'accepted') return { answer, said, cookies: given };
  const { response } = answer;
  return { answer, said: readHecAnswer(response.body), cookies: response.headers['set-cookie'] };
}
