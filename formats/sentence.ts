// One event as a sentence for people: actor, action, target, origin, and result. It contains the
// record's own message, and is never replaced by it: a record's message seldom names all of these.
// Formats and sinks whose readers see one text use this one. Programs read the other fields.

import { type Event, isObject, type OcsfEvent } from '../src/contracts/index.ts';
import { actingUser, actionOf, firstOf, isFinding, outcomeText, part, textOf } from './parts.ts';
import { type RecordWords, recordWords } from './record-words.ts';
import { oneLine } from './text.ts';

const baseEvent = 0;

/** The event as one line of text, without line breaks or control characters. */
export function sentence(event: Pick<Event, 'ocsf'>): string {
  return oneLine(wholeSentence(event));
}

/** The same with the record's own message verbatim, which may have several lines. */
export function wholeSentence(event: Pick<Event, 'ocsf'>): string {
  let text = '';
  for (const [before = '', said = ''] of clausesOf(event)) text += before + said;
  const [before = '', said = ''] = messageOf(event);
  return oneLine(text) + before + said;
}

/** The texts of the sentence: those of the event, and the record's own message. */
export function textsOfSentence(event: Pick<Event, 'ocsf'>): {
  readonly texts: readonly string[];
  readonly message: string | undefined;
} {
  const [, message] = messageOf(event);
  return { texts: clausesOf(event).map(([, text = '']) => text), message };
}

function messageOf({ ocsf }: Pick<Event, 'ocsf'>): readonly string[] {
  return clause(' - ', ocsf.message);
}

/** Each text except the record's own message, with the words before it. */
function clausesOf({ ocsf }: Pick<Event, 'ocsf'>): readonly (readonly string[])[] {
  const evidence = firstOf(ocsf.evidences);
  const source = part(ocsf.src_endpoint ?? evidence.src_endpoint);
  const target = part(ocsf.dst_endpoint ?? evidence.dst_endpoint);
  const who = actingUser(ocsf);
  const app = part(ocsf.actor);
  const words = wordsOf(ocsf);
  return [
    ['', textOf(ocsf.class_name) ?? 'Event'],
    ...whatOf(ocsf, words),
    clause(' by ', who.name, who.email_addr, who.uid, words.who),
    // A program that acts by itself has been named already.
    part(ocsf.actor).user === undefined ? [] : clause(' with ', app.app_name, app.app_uid),
    clause(' from ', source.ip, source.hostname, source.name, words.from),
    clause(' to ', target.hostname, target.ip, target.name, words.to),
    ...thingOf(ocsf, words),
    clause(', ', outcomeText(ocsf)),
    clause(', ', ocsf.status_detail),
  ];
}

/** Of a record without a mapping, or of a finding without a title, the record's own words. */
function wordsOf(ocsf: OcsfEvent): RecordWords {
  const isKnown = ocsf.class_uid !== baseEvent && (!isFinding(ocsf) || titleOf(ocsf).length > 0);
  return isKnown ? {} : recordWords(ocsf.unmapped);
}

/** For a finding, its title and the decision; for other events, the action. */
function whatOf(ocsf: OcsfEvent, words: RecordWords): readonly (readonly string[])[] {
  const action = actionOf(ocsf);
  if (isFinding(ocsf)) {
    const known = titleOf(ocsf);
    const title = known.length > 0 ? known : clause(': ', words.title, words.action);
    return title.length === 0 ? [[': ', action ?? 'event']] : [title, clause(', ', action)];
  }
  if (ocsf.class_uid !== baseEvent) return [[': ', action ?? 'event']];
  const title = clause(': ', words.title);
  // The name of the source is better than the activity of a Base Event, which is always Unknown.
  const { log_name: source } = part(ocsf.metadata);
  if (title.length === 0) return [clause(': ', words.action, source, action ?? 'event')];
  return [title, clause(', ', words.action)];
}

function titleOf(ocsf: OcsfEvent): readonly string[] {
  const info = part(ocsf.finding_info ?? firstOf(ocsf.finding_info_list));
  const [type] = Array.isArray(info.types) ? info.types : [];
  return clause(': ', info.title, part(info.analytic).name, info.desc, type);
}

/** The target, by its most descriptive name; a URL as a whole, or as its host and path. */
function thingOf(ocsf: OcsfEvent, words: RecordWords): readonly (readonly string[])[] {
  const request = part(ocsf.http_request);
  const url = part(request.url ?? ocsf.url);
  const thing = [ocsf.entity, firstOf(ocsf.resources), ocsf.device, ocsf.app].find(isNamed);
  const { name, hostname, uid } = part(thing);
  const user = part(ocsf.user);
  const isUser = actingUser(ocsf) !== user;
  const named = clause(
    ' on ',
    ...[name, hostname, uid],
    ...(isUser ? [user.name, user.email_addr, user.uid] : []),
    ...[part(ocsf.query).hostname, url.url_string],
  );
  if (named.length > 0) return [named];
  const host = clause(' on ', url.hostname);
  if (host.length > 0) return [host, clause('', url.path)];
  return [clause(' on ', url.path, part(ocsf.group).name, words.on)];
}

function isNamed(value: unknown): boolean {
  return isObject(value) && [value.name, value.hostname, value.uid].some((one) => textOf(one));
}

/** The first value that is a text, after its preposition. */
function clause(before: string, ...values: readonly unknown[]): readonly string[] {
  for (const value of values) {
    const text = textOf(value);
    if (text !== undefined) return [before, text];
  }
  return [];
}
