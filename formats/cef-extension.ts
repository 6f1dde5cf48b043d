// Writes an event as CEF in one walk over its attributes. Each value goes to its key in the table
// (cef-keys.ts), or to a key of its own if it has none, if a better source has taken the key, or if
// it does not fit. Values without a possible key (lists, empty values, names that make no key) are
// in one value as JSON, `sluiceUnmapped`. Invariants: every value of an event is in its CEF, within
// the lengths, otherwise `sluiceTruncated` reports it; a key occurs at most once. Times are epoch
// milliseconds.

import { type Event, isObject, type Look, type OcsfEvent } from '../src/contracts/index.ts';
import { type CefKey, cefKeys, ownLengthMax } from './cef-keys.ts';
import { type CefPath, CefPaths } from './cef-places.ts';
import { type Pen, writePlain, writeText, writeValue } from './cef-values.ts';
import { cefName, classIdOf, outcomeOf } from './cef-whole.ts';
import type { Dialect } from './dialect.ts';
import { actionOf, part, textOf } from './parts.ts';

/** One value without a key. */
interface Left {
  readonly path: string;
  readonly value: unknown;
}

const depthMax = 16;
// More keys than this are no searchable event, and receivers that index every key have limits of
// their own.
const ownKeysMax = 128;
const authentication = 3002;
const dnsActivity = 4003;
const noTexts = cefKeys.map(() => '');
const noPlaces = cefKeys.map((): CefPath | null => null);
const slots = new Map(cefKeys.map(({ key }, slot) => [key, slot]));
const custom = { key: '', length: ownLengthMax };

function slotOf(key: string): number {
  const slot = slots.get(key);
  if (slot === undefined) throw new Error(`the table has no key ${key}`);
  return slot;
}

const slot = {
  classId: slotOf('deviceEventClassId'),
  name: slotOf('name'),
  act: slotOf('act'),
  suser: slotOf('suser'),
  suid: slotOf('suid'),
  spriv: slotOf('spriv'),
  duser: slotOf('duser'),
  duid: slotOf('duid'),
  dpriv: slotOf('dpriv'),
  service: slotOf('sourceServiceName'),
  app: slotOf('app'),
  reason: slotOf('reason'),
  rule: slotOf('cs1'),
  kind: slotOf('cs3'),
  resource: slotOf('cs4'),
  resourceUid: slotOf('cs5'),
  attack: slotOf('threatAttackID'),
  severity: slotOf('sluiceSeverity'),
} as const;

/** An event in pieces, from which a line is joined. */
export interface Pieces {
  readonly classId: string;
  readonly name: string;
  /** The pairs under the table's keys, without the uid. */
  readonly pairs: string;
  /** The pairs under keys of their own. */
  readonly own: readonly string[];
  readonly left: readonly Left[];
  /** A value was cut whose complete form is nowhere else. */
  readonly cut: boolean;
}

/** Splits events into pieces. Not re-entrant: it holds the current event. */
export class Writer {
  readonly #dialect: Dialect;
  readonly #beginnings: readonly string[];
  readonly #ends: readonly string[];
  #pen: Pen;
  #withRest = false;
  readonly #places: CefPaths;
  #ocsf: OcsfEvent | null = null;
  #texts: string[] = [];
  /** The origin of each text and its kind; leftovers of the previous event are ignored. */
  readonly #from = noPlaces.slice();
  readonly #values: unknown[] = noTexts.slice();
  #own: string[] = [];
  #left: Left[] = [];
  #cut = false;
  #written = 0;
  /** The inspected properties of the event's values, if requested. */
  #looks: Look[] | null = null;
  readonly #strays = new Set<string>();

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
    const { separator } = dialect;
    this.#beginnings = cefKeys.map(({ key, label, kind }) =>
      kind === 'address' ? '' : `${separator}${dialect.keyOf(key, label)}=`,
    );
    this.#ends = cefKeys.map(({ key, label }) => dialect.labelOf(key, label));
    this.#places = new CefPaths(separator);
    this.#pen = { dialect, lengthMax: 0, replacePipe: false };
  }

  /** The pieces of an event; `withRest`: including values without a key in the table. */
  pieces(event: Event, pen: Pen, withRest: boolean): Pieces {
    const { ocsf } = event;
    this.#pen = pen;
    this.#withRest = withRest;
    this.#begin(ocsf);
    if (ocsf.class_uid === dnsActivity) {
      this.#texts[slot.app] = 'DNS';
      this.#from[slot.app] = null;
    }
    this.#walk(this.#places.event, ocsf, 0);
    const { unmapped } = ocsf;
    if (isObject(unmapped)) {
      this.#walk(event.kind === 'log' ? this.#places.ofLog : this.#places.ofOther, unmapped, 0);
    }
    this.#conclude(ocsf);
    return {
      classId: this.#texts[slot.classId] ?? '',
      name: this.#texts[slot.name] ?? '',
      pairs: this.#pairs(event),
      own: this.#own,
      left: this.#left,
      cut: this.#cut,
    };
  }

  /** The inspected properties of an event's values, collected while it is split. */
  looks(event: Event, pen: Pen, withRest: boolean): readonly Look[] {
    const looks: Look[] = [];
    this.#looks = looks;
    this.pieces(event, pen, withRest);
    this.#looks = null;
    return looks;
  }

  #begin(ocsf: OcsfEvent): void {
    this.#ocsf = ocsf;
    this.#texts = noTexts.slice();
    this.#own = [];
    this.#left = [];
    this.#cut = false;
    this.#written += 1;
    if (this.#strays.size > 0) this.#strays.clear();
  }

  #walk(above: CefPath, object: object, depth: number): void {
    const members = object as Readonly<Record<string, unknown>>;
    const { order } = above;
    let position = 0;
    for (const name in members) {
      const value = members[name];
      const guess = order[position];
      const place = guess !== undefined && guess.name === name ? guess : above.find(name, position);
      position += 1;
      if (!place.isElsewhere && value !== undefined) this.#visit(place, value, depth);
    }
  }

  #visit(place: CefPath, value: unknown, depth: number): void {
    if (typeof value === 'object' && value !== null) {
      this.#enter(place, value, depth);
    } else if (value === null || value === '') {
      this.#leave(place, value);
    } else if (place.slot < 0 || !this.#offer(place, value)) {
      this.#writeOwn(place, value);
    }
  }

  /** Of a list in the table, only the first member uses the table's keys. */
  #enter(place: CefPath, value: object, depth: number): void {
    const gives = place.insteadOf !== '' && this.#ocsf?.[place.insteadOf] !== undefined;
    const here = gives ? place.plain : place;
    if (!Array.isArray(value)) {
      if (depth < depthMax) this.#walk(here, value, depth + 1);
      else this.#leave(place, value);
      return;
    }
    const [first] = value;
    if (!here.inTable || !isObject(first)) {
      this.#leave(place, value);
      return;
    }
    this.#walk(here, first, depth + 1);
    if (value.length > 1) this.#leave(place, value.slice(1));
  }

  /** True if the value is under the table's key, or equals the value there. */
  #offer(place: CefPath, value: unknown): boolean {
    const row = cefKeys[place.slot];
    if (row === undefined) return false;
    const { text, cut } = writeValue(row, value, this.#pen);
    const held = this.#texts[place.slot];
    const before = this.#from[place.slot];
    if (this.#looks !== null) {
      const rival = held === '' ? undefined : before ? this.#values[place.slot] : held;
      this.#looks.push({ ...lookOf(row, value), rival });
    }
    if (text === '') return false;
    if (held !== '' && held !== undefined) {
      if (held === text && !cut) return true;
      if (before === null || before === undefined || before.rank <= place.rank) return false;
      this.#writeOwn(before, this.#values[place.slot]);
    }
    this.#texts[place.slot] = text;
    this.#from[place.slot] = place;
    this.#values[place.slot] = value;
    // The start is under the searched key, and the whole is added if there is space.
    if (cut) this.#writeOwn(place, value);
    return true;
  }

  #writeOwn(place: CefPath, value: unknown): void {
    if (!this.#withRest) return;
    this.#looks?.push({ value, as: 'text', bytesMax: ownLengthMax, rival: undefined });
    const { own } = place;
    if (own === null || this.#own.length >= ownKeysMax || this.#taken(own.pair, place)) {
      this.#leave(place, value);
      return;
    }
    const { text, cut } =
      typeof value === 'string' ? writeText(value, custom, this.#pen) : writePlain(String(value));
    if (text === '') {
      this.#leave(place, value);
      return;
    }
    if (own.remembered) own.writtenIn = this.#written;
    else this.#strays.add(own.pair);
    if (cut) this.#cut = true;
    this.#own.push(own.pair + text);
  }

  #taken(pair: string, { own }: CefPath): boolean {
    if (own?.remembered === true) return own.writtenIn === this.#written;
    return this.#strays.has(pair);
  }

  #leave({ path }: CefPath, value: unknown): void {
    if (!this.#withRest) return;
    this.#left.push({ path, value });
    // Which of the remaining values fit depends on all of them.
    this.#looks?.push(...valuesIn(value).map((one) => looked(one, 'other')));
  }

  /** Values derived from several attributes together. */
  #conclude(ocsf: OcsfEvent): void {
    const texts = this.#texts;
    if (texts[slot.classId] === '') {
      this.#compareIds(ocsf);
      this.#put(slot.classId, classIdOf(ocsf));
    }
    if (texts[slot.name] === '') this.#put(slot.name, cefName(ocsf));
    if (texts[slot.act] === '') this.#put(slot.act, actionOf(ocsf));
    this.#concludeReason(ocsf);
    if (ocsf.class_uid === authentication && texts[slot.suser] === '' && texts[slot.suid] === '') {
      // At a login one user is both the actor and the target.
      texts[slot.suser] = texts[slot.duser] ?? '';
      texts[slot.suid] = texts[slot.duid] ?? '';
      texts[slot.spriv] = texts[slot.dpriv] ?? '';
    }
    this.#concludeAgent(ocsf);
    if (texts[slot.resource] === '') texts[slot.resource] = texts[slot.resourceUid] ?? '';
    // The target itself may be a user or a rule.
    const kind = texts[slot.kind]?.toLowerCase();
    if (kind === 'user' && texts[slot.duser] === '' && texts[slot.duid] === '') {
      texts[slot.duser] = texts[slot.resource] ?? '';
      texts[slot.duid] = texts[slot.resourceUid] ?? '';
    } else if (kind === 'rule' && texts[slot.rule] === '') {
      texts[slot.rule] = texts[slot.resource] ?? '';
    }
    const level = ocsf.severity_id;
    if (texts[slot.severity] === '' && level !== 0 && level !== 1) {
      this.#put(slot.severity, ocsf.severity);
    }
  }

  /** A finding's id gives its kind unless it is the record's id. */
  #compareIds({ finding_info, metadata }: OcsfEvent): void {
    const uid = textOf(part(finding_info).uid);
    const rival = part(metadata).original_event_uid;
    if (uid !== undefined && uid !== rival) this.#looks?.push({ ...looked(uid, 'other'), rival });
  }

  /** The source's own word for the outcome is not a reason for it. */
  #concludeReason(ocsf: OcsfEvent): void {
    const status = textOf(ocsf.status);
    const place = this.#from[slot.reason];
    const text = this.#texts[slot.reason] ?? '';
    if (!place || status === undefined || text.toLowerCase() !== status.toLowerCase()) return;
    this.#texts[slot.reason] = '';
    if (text !== outcomeOf(ocsf)) this.#writeOwn(place, text);
  }

  /** A program that acts by itself is the actor; one used by a person is a service in between. */
  #concludeAgent(ocsf: OcsfEvent): void {
    const actor = part(ocsf.actor);
    const name = textOf(actor.app_name);
    const uid = textOf(actor.app_uid);
    if (name === undefined && uid === undefined) return;
    const texts = this.#texts;
    if (texts[slot.suser] === '' && texts[slot.suid] === '') {
      this.#put(slot.suser, name ?? uid);
      this.#put(slot.suid, uid);
    } else if (uid !== undefined) {
      this.#writeOwn(this.#placeOfAgent('app_uid'), uid);
    }
    if (texts[slot.service] === '') this.#put(slot.service, name);
    else if (name !== undefined) this.#writeOwn(this.#placeOfAgent('app_name'), name);
  }

  #placeOfAgent(name: string): CefPath {
    return this.#places.event.find('actor', ownKeysMax).find(name, ownKeysMax);
  }

  #put(at: number, value: unknown): void {
    const row = cefKeys[at];
    if (row === undefined) return;
    this.#texts[at] = writeValue(row, value, this.#pen).text;
    this.#looks?.push(lookOf(row, value));
  }

  #pairs({ stream, ocsf }: Event): string {
    const { separator } = this.#dialect;
    const texts = this.#texts;
    let pairs = '';
    for (let at = slot.name + 1; at < texts.length; at++) {
      const text = texts[at];
      if (text !== '') pairs += (this.#beginnings[at] ?? '') + text + (this.#ends[at] ?? '');
    }
    const facility = writeText(stream, { key: 'deviceFacility', length: 1023 }, this.#pen).text;
    if (facility !== '') pairs += `${separator}deviceFacility=${facility}`;
    const outcome = writeText(outcomeOf(ocsf), { key: 'outcome', length: 63 }, this.#pen).text;
    if (outcome !== '') pairs += `${separator}outcome=${outcome}`;
    return texts[slot.attack] === '' ? pairs : `${pairs}${separator}frameworkName=MITRE ATT&CK`;
  }
}

/** The inspected property of a value under a row's key. */
function lookOf({ key, kind, length }: CefKey, value: unknown): Look {
  if (kind === 'address' || kind === 'mac' || kind === 'port' || kind === 'count')
    return looked(value, kind);
  if (kind === 'time') return looked(value, 'text');
  const isCopied = (kind === 'text' || kind === 'whole') && key !== 'reason' && key !== 'cs3';
  return isCopied ? looked(value, 'text', length) : looked(value, 'other');
}

function looked(value: unknown, as: Look['as'], bytesMax: number = Number.POSITIVE_INFINITY): Look {
  return { value, as, bytesMax, rival: undefined };
}

function valuesIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [value];
  return Object.values(value).flatMap(valuesIn);
}
