// The findings of the comparison, as records of the changed source's streams.

import type { NewPage } from '../contracts/index.ts';
import {
  conditionRecord,
  type Finding,
  type FindingRecord,
  Identifier,
  ownPage,
} from '../fetch/index.ts';
import { timeText } from '../tools/index.ts';
import type { DriftFinding } from './judge.ts';

interface Place {
  readonly name: string;
  readonly source: string;
  readonly company: string | null;
}

/** A page per finding, in the order of finding. */
export function findingsPages(
  findings: readonly DriftFinding[],
  { trail }: { readonly trail: readonly string[] },
  now: number,
): { readonly pages: readonly NewPage[]; readonly records: readonly FindingRecord[] } {
  const reported = findings.map((finding) => {
    const { name, source, company } = placeOf(finding);
    const record = conditionRecord({ name, source }, findingOf(finding, trail.join(', ')), now);
    const id = new Identifier({ source, company: company ?? '', stream: name });
    const about = finding.is === 'unseen' ? finding.event.uid : finding.change.uid;
    const whose = company === null ? {} : { company };
    const context = { source, stream: name, kind: 'condition', ...whose, fetchedAt: now } as const;
    return { record, page: ownPage(context, [record], [id.ownUid([record.condition, about])]) };
  });
  return { pages: reported.map(({ page }) => page), records: reported.map(({ record }) => record) };
}

function placeOf(finding: DriftFinding): Place {
  if (finding.is === 'unseen') return finding.stream;
  const { stream, source, company } = finding.change;
  return { name: stream, source, company };
}

function findingOf(finding: DriftFinding, trail: string): Finding {
  if (finding.is === 'unseen') {
    const { event, mayCancel } = finding;
    const { keys, type, action, actor, operation, at, uid } = event;
    const who = actor === null ? '' : ` by ${JSON.stringify(actor)}`;
    return {
      condition: 'change.unseen',
      message: `${event.source} reports that ${nameOf(type, keys[0])} was ${operation}${who}, and no reading shows it`,
      details: {
        ...{
          event_uid: uid,
          entity_kind: type,
          entity_id: keys[0] ?? '',
          operation,
          action,
          actor,
        },
        ...{ at: timeText(at), may_cancel: mayCancel },
      },
    };
  }
  const { uid, kind, keys, name, operation, from, to, source } = finding.change;
  if (finding.is === 'unmatchable') {
    return {
      condition: 'drift.unmatchable',
      message: `none of the first changes of ${source} has an event in ${trail} that names its id; set watch.drift.match, or remove ${source} from watch.drift.changes`,
      details: { change_uid: uid, entity_kind: kind, ids: keys, trail },
    };
  }
  const since = from === null ? '' : ` between ${timeText(from)} and ${timeText(to)}`;
  return {
    condition: 'change.unexplained',
    message: `${nameOf(kind, name)} was ${operation}${since}, and no event of ${trail} reports it`,
    details: {
      ...{ change_uid: uid, entity_kind: kind, entity_id: keys[0] ?? '', entity_name: name },
      ...{ operation, from: timeText(from), to: timeText(to), trail },
    },
  };
}

function nameOf(kind: string, name = ''): string {
  return `${kind || 'what'} ${JSON.stringify(name)}`;
}
