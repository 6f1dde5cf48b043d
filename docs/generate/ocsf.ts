// The generated part of the OCSF page, from the normaliser itself: under which names it looks for a value, and at which
// attribute of the event a value under that name appears.

import { createHash } from 'node:crypto';
import type { Event, PageContext } from '../../src/contracts/event.ts';
import { isObject, type Json, type JsonObject } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { classNames, namedClass } from '../../src/normalise/schema.ts';
import { type Accepts, slots } from '../../src/normalise/slots.ts';
import { auditVocabulary } from '../../src/normalise/vocabulary.ts';
import { table } from './settings-table.ts';

/** An administrator's change of a policy, as an upstream might report it. */
const record = {
  id: 'evt-0001',
  timestamp: '2026-03-04T05:06:07.089Z',
  action: 'policy.update',
  actor: { id: 'usr-17', email: 'anna.schmidt@example.com', name: 'Anna Schmidt', role: 'admin' },
  source_ip: '203.0.113.7',
  resource: { type: 'policy', id: 'pol-9', name: 'Default policy' },
  result: 'success',
  ticket_reference: 'T-1001',
};

const context: PageContext = {
  ...{ source: 'audit', stream: 'audit', kind: 'audit' },
  fetchedAt: Date.UTC(2026, 2, 4, 5, 6, 37),
};
const uid = createHash('sha256').update('evt-0001').digest('hex');
const normalise = compileNormaliser('audit', { time: [], id: null });

/** That record as an event. */
export function anEvent(): Event {
  const { source, stream, kind } = context;
  const raw = Buffer.from(JSON.stringify(record));
  return {
    uid,
    source,
    stream,
    kind,
    context,
    offset: 0,
    raw,
    ocsf: normalise(record, uid, context),
  };
}

/** That record, and the event it becomes. */
export function recordSample(): string {
  const json = (value: object) => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
  return `${json(record)}\n\nbecomes\n\n${json(anEvent().ocsf)}`;
}

/** The OCSF classes that a mapping may name. */
export function classesTable(): string {
  const rows = classNames.map((name) => {
    const { uid, caption, activities, usual, attributes, some, one } = namedClass(name);
    const needed = [...attributes.values()].filter(({ required }) => required);
    const own = needed.filter(({ name }) => !alwaysThere.has(name)).map(({ name }) => code(name));
    return [
      code(name),
      String(uid),
      caption,
      activities[usual] ?? '',
      [
        ...own,
        ...(some.length === 0 ? [] : [`one of ${some.map(code).join(', ')}`]),
        ...(one.length === 0 ? [] : [`exactly one of ${one.map(code).join(', ')}`]),
      ].join('; '),
    ];
  });
  return table(['`class`', 'uid', 'caption', 'activity unless mapped', 'required'], rows);
}

/** Every event has these, whatever its record. */
const alwaysThere = new Set(['time', 'severity_id', 'activity_id', 'metadata']);

function code(text: string): string {
  return `\`${text}\``;
}

const namesShown = 6;

/** What is looked for in audit records: where it comes out, and the first names it is looked for under. */
export function namesTable(): string {
  const rows = Object.keys(slots).map((slot) => {
    const names = namesOf(slot);
    const more = names.length - namesShown;
    const shown = names.slice(0, namesShown).map(({ name }) => code(name));
    return [
      slot.replace(/^src/, 'source').replace(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`),
      placeOf(slot),
      shown.join(', ') + (more > 0 ? ` and ${more} more` : ''),
    ];
  });
  return table(['value', 'attribute', 'names; the first one present wins'], rows);
}

/** Every name of every value, in their order. */
export function everyName(): string {
  return Object.keys(slots)
    .map(
      (slot) =>
        `- **${placeOf(slot)}**: ${namesOf(slot)
          .map(({ name }) => code(name))
          .join(', ')}`,
    )
    .join('\n');
}

interface Name {
  readonly name: string;
  readonly accepts: Accepts;
  readonly rank: number;
}

function namesOf(slot: string): readonly Name[] {
  const requested = Object.entries(slots).find(([name]) => name === slot)?.[1];
  return [...auditVocabulary().meanings]
    .flatMap(([name, meanings]) =>
      meanings.flatMap((meaning) => (meaning.slot === requested ? [{ name, ...meaning }] : [])),
    )
    .toSorted((a, b) => a.rank - b.rank);
}

/** A value of each kind that no other part of a probe has. */
const probes: Readonly<Record<Accepts, Json>> = {
  ...{ text: 'probe', word: 'probe', json: { probe: 1 }, ip: '203.0.113.99', port: 54_321 },
  ...{ mac: '00:00:5e:00:53:99', host: 'probe.example', email: 'probe@probe.example', code: 418 },
  ...{
    method: 'PATCH',
    time: '2026-01-02T03:04:05Z',
    outcome: 'failure',
    'known outcome': 'failure',
    changes: [{ field: 'probe', from: 1, to: 2 }],
  },
  ...{ severity: 'high', severity_id: 4, priority: 2, level: 3, risk: 8 },
};

/** A value of another kind shows where these come out. */
const reported: Readonly<Record<string, string>> = {
  time: '`time`; original text: `metadata.original_time`',
  operation: '`api.operation` and `metadata.event_code`; determines the activity',
  status: '`status_id`, `status`',
  severity: '`severity_id`, `severity`',
  actorType: '`actor.user.type_id`, `actor.user.type`',
  changes:
    'a list of field, old and new value: `resources[].data.before`, `resources[].data.after`',
};

/** Where a value under the slot's first name comes out: of a record that has all that goes with it, else alone. */
function placeOf(slot: string): string {
  const said = reported[slot];
  if (said !== undefined) return said;
  const [first] = namesOf(slot);
  if (first === undefined) throw new Error(`nothing is looked for as ${slot}`);
  const probe = probes[first.accepts];
  for (const others of [company, {}]) {
    const { unmapped: _, ...placed } = normalise(
      { [first.name]: probe, ...others, [first.name]: probe },
      uid,
      context,
    );
    const path = pathOf(placed as JsonObject, JSON.stringify(probe));
    if (path !== null) return code(path);
  }
  throw new Error(`a value under ${first.name} comes out nowhere`);
}

/** What other values need beside them: a port an address, a type a thing. */
const company = { action: 'policy.update', actor_name: 'a', ip: '192.0.2.1', target_id: 'r' };

/** The dotted path of a value within another; null where it is not there. */
function pathOf(value: Json, requested: string): string | null {
  if (JSON.stringify(value) === requested) return '';
  const inside = Array.isArray(value)
    ? value.map((element): readonly [string, Json] => ['[]', element])
    : Object.entries(isObject(value) ? value : {});
  for (const [step, member] of inside) {
    const rest = member === undefined ? null : pathOf(member, requested);
    if (rest !== null) return `${step}${rest === '' || rest.startsWith('[') ? '' : '.'}${rest}`;
  }
  return null;
}
