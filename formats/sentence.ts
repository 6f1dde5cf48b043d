// One event as a line for people: what happened, who did it, from where, to what, and how it ended.
// It is the `text` message of a syslog line. It carries no more than a reader takes in at a glance;
// programs read the other formats.

import type { Event } from '../src/contracts/event.ts';
import { actionOf, firstOf, part, statusOf, textOf } from './parts.ts';
import { oneLine } from './text.ts';

/** The event as one line of text, without line breaks or control characters. */
export function sentence(event: Event): string {
  let text = '';
  for (const [before = '', told = ''] of clausesOf(event)) text += before + told;
  return oneLine(text);
}

/** The texts of an event that its sentence is made of. */
export function textsOfSentence(event: Event): readonly string[] {
  return clausesOf(event).map(([, text = '']) => text);
}

/** What is said, each with what stands before it. */
function clausesOf({ ocsf }: Event): readonly (readonly string[])[] {
  const user = part(part(ocsf.actor).user ?? ocsf.user);
  const source = part(ocsf.src_endpoint);
  const target = part(ocsf.dst_endpoint);
  const resource = part(ocsf.entity ?? firstOf(ocsf.resources));
  return [
    ['', textOf(ocsf.class_name) ?? 'Event'],
    [': ', actionOf(ocsf) ?? 'event'],
    clause(' by ', user.name, user.email_addr, user.uid),
    clause(' from ', source.ip, source.hostname, source.name),
    clause(' to ', target.hostname, target.ip, target.name),
    clause(' on ', resource.name, resource.uid),
    clause(', ', statusOf(ocsf)),
    clause(', ', ocsf.status_detail),
    clause(' - ', ocsf.message),
  ];
}

/** The first of the values that is a text, after its preposition. */
function clause(before: string, ...values: readonly unknown[]): readonly string[] {
  for (const value of values) {
    const text = textOf(value);
    if (text !== undefined) return [before, text];
  }
  return [];
}
