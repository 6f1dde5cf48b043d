// A failed token request concerns the sink and none of its events, whatever the status. Invariant: no event is split from
// its batch or blamed because of a token endpoint.

import { ExportError } from '../../src/contracts/index.ts';
import { type FailedAnswer, heldNext } from './http-post.ts';

/** The result of a sink whose token request failed. `settings`: where the endpoint is set; `next`: for a refusal. */
export function tokenFailure(
  answer: FailedAnswer,
  { settings, next }: { readonly settings: string; readonly next: string },
): FailedAnswer {
  const { code, message, details } = answer.cause;
  const status = Number(details.status);
  const explained = (code: ExportError['code'], text: string) =>
    new ExportError(code, message, { next: text, details, cause: answer.cause });
  if (answer.outcome === 'retry') {
    if (code !== 'sink_unreachable' && code !== 'sink_throttled') return answer;
    const text = `Check the token endpoint of ${settings}, and the proxy if there is one. ${heldNext}`;
    return { ...answer, cause: explained(code, text) };
  }
  const isRedirect = status >= 300 && status < 400;
  const text = isRedirect
    ? `Redirects are not followed: set the address of ${settings} to where it points. Nothing was lost.`
    : next;
  return { outcome: 'refused', scope: 'sink', cause: explained('sink_refused', text) };
}
