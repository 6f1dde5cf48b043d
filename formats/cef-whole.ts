// CEF fields about the event as a whole, from several attributes: its class, its name, its outcome.

import type { OcsfEvent } from '../src/contracts/index.ts';
import { countOf, outcomeText, part, resultOf, textOf } from './parts.ts';

const detectionFinding = 2004;
const signatureMax = 24;

/** A finding's own short id if many can share it; otherwise class and activity. */
export function classIdOf({ class_uid, activity_id, finding_info, metadata }: OcsfEvent): string {
  const uid = textOf(part(finding_info).uid);
  const shared =
    class_uid === detectionFinding &&
    uid !== undefined &&
    uid.length <= signatureMax &&
    uid !== part(metadata).original_event_uid;
  return shared ? uid : `${countOf(class_uid) ?? 0}:${countOf(activity_id) ?? 0}`;
}

/** The outcome; a finding's status is the progress of its investigation. */
export function outcomeOf(ocsf: OcsfEvent): string {
  const result = resultOf(ocsf);
  if (result !== undefined) return result === 1 ? 'success' : 'failure';
  return outcomeText(ocsf) ?? '';
}

/** A readable name without details: class and activity. */
export function cefName(ocsf: OcsfEvent): string {
  const activity = textOf(ocsf.activity_name) ?? 'Event';
  const className = textOf(ocsf.class_name);
  return className === undefined ? activity : `${className}: ${activity}`;
}
