// One question to a collector and what it says, by the status and by its own words. The cookies of
// each answer go with the next question.

import type { Tools } from '../../../src/contracts/tools.ts';
import { type HttpReceiver, type PostAnswer, postOnce } from '../../shared/http-post.ts';
import { type HecAnswer, judgeHec, readHecAnswer } from './answer.ts';
import type { Cookies } from './cookies.ts';

/** What is asked with. */
export interface HecRequestContext {
  readonly receiver: HttpReceiver;
  readonly body: Uint8Array;
  readonly channel: string;
  readonly cookies: Cookies;
  /** Begins every error message. */
  readonly doing: string;
  readonly tools: Tools;
  readonly signal: AbortSignal;
  /** The index that an event of the body is for, in the words of an error. */
  readonly indexOf?: (place: number) => string;
  /** True where the events of the sink are for several indexes. */
  readonly hasIndexes?: boolean;
}

/** What was said. */
export interface Said {
  readonly answer: PostAnswer;
  /** Null: no answer of a collector, or one about acknowledgements. */
  readonly said: HecAnswer | null;
  /** The cookies that come with it. */
  readonly cookies: string | undefined;
}

/** Asks once. Rejects only when the signal aborts. */
export async function askCollector(asking: HecRequestContext): Promise<Said> {
  const { receiver, body, channel, cookies, indexOf, hasIndexes, ...context } = asking;
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
