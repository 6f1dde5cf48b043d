// A page with one condition of a stream, for reports by the run itself. Invariant: the same report has the same uid, so
// that a report repeated after a kill is not a second event.

import type { Append, ConditionRecord, Stream } from '../contracts/index.ts';
import { conditionRecord, type Finding, Identifier, ownPage, pageContext } from '../fetch/index.ts';

/** A report about a stream. */
export interface StreamCondition {
  readonly finding: Finding & { readonly condition: ConditionRecord['condition'] };
  /** The identity among the stream's reports of that condition. */
  readonly about: readonly (string | number)[];
  /** Epoch milliseconds. */
  readonly now: number;
  /** Called with the condition, for the status. */
  readonly found: (condition: ConditionRecord) => void;
}

/** The page that is appended to the stream. */
export function conditionPage(
  stream: Stream,
  { finding, about, now, found }: StreamCondition,
): Append['pages'][number] {
  const { name, source, company = '' } = stream;
  const condition = conditionRecord(stream, finding, now);
  found(condition);
  const identity = { source, company, stream: name, id: null, checkContent: false };
  const uid = new Identifier(identity).ownUid([condition.condition, ...about]);
  return ownPage(pageContext(stream, 'condition', now), [condition], [uid]);
}
