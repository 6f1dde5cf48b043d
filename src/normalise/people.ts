// The actor of a record: users, agents and the endpoint they came from. Invariant: values of two
// different people (such as `actor` and `user_id`, which may be the target's) are never merged into
// one.

import type { JsonObject, OcsfActor, OcsfEndpoint, OcsfUser } from '../contracts/index.ts';
import type { Take } from './branch.ts';
import type { Open } from './envelope.ts';
import type { Reading } from './reading.ts';
import { slots } from './slots.ts';
import { isEmail, memo, sameWord } from './values.ts';

/** OCSF `user.type` captions by `type_id`. */
const userCaptions: Readonly<Record<number, string>> = {
  1: 'User',
  2: 'Admin',
  3: 'System',
  4: 'Service',
};
const other = 99;
/** Not an OCSF number: the actor is a program that acts by itself, an `app`, not a user. */
const agent = -1;

const typeWords: readonly (readonly [id: number, words: string])[] = [
  [
    1,
    'user human person member useractor employee enduser iamuser regular standard viewer analyst',
  ],
  [
    2,
    'admin administrator superadmin owner root adminuser superuser orgadmin securityadmin rootuser',
  ],
  [3, 'system internal platform scheduler'],
  [
    4,
    'service serviceaccount apikey machine application integration client token serviceprincipal awsservice',
  ],
  [agent, 'agent aiagent autonomousagent bot copilot app automation assistant'],
];

const who = [
  slots.actorName,
  slots.actorUid,
  slots.actorEmail,
  slots.actorType,
  slots.actorFullName,
] as const;

/** All slots that describe people. */
export const peopleSlots = [...who, slots.agentName, slots.agentUid] as const;

/** The user and the agent that a record names. */
export interface People {
  readonly user: OcsfUser | undefined;
  readonly agent: { readonly app_name?: string; readonly app_uid?: string } | undefined;
}

/** Creates the parser of people, with a cache of type words. */
export function peopleReader(): (reading: Reading) => People {
  const types = new Map(
    typeWords.flatMap(([id, words]) => words.split(' ').map((word) => [word, id])),
  );
  const typeOf = memo((text) => types.get(text.toLowerCase().replace(/[^a-z0-9]/g, '')) ?? other);
  return (reading) => {
    keepOneGroup(reading, who);
    const type = reading.text(slots.actorType);
    const typeId = type === undefined ? 0 : typeOf(type);
    if (typeId === agent) return { user: undefined, agent: agentFromActor(reading) };
    return { user: userOf(reading, type, typeId), agent: namedAgent(reading) };
  };
}

/** Puts back the values outside the best group of names among these slots. */
export function keepOneGroup(reading: Reading, members: readonly number[]): void {
  const { takes } = reading;
  let best: Take | undefined;
  let mixed = false;
  for (const slot of members) {
    const take = takes[slot];
    if (take === undefined) continue;
    if (best === undefined) best = take;
    else if (take.group !== best.group) mixed = true;
    if (take.rank < best.rank) best = take;
  }
  if (!mixed) return;
  for (const slot of members) {
    const take = takes[slot];
    if (take !== undefined && take.group !== best?.group) reading.refuse(slot);
  }
}

function userOf(reading: Reading, type: string | undefined, typeId: number): OcsfUser | undefined {
  const uid = reading.text(slots.actorUid);
  const named = reading.text(slots.actorName);
  const email = reading.text(slots.actorEmail);
  const fullName = reading.text(slots.actorFullName);
  const name = named ?? (uid === undefined ? (email ?? fullName) : undefined);
  if (name === undefined && uid === undefined) {
    if (type !== undefined) reading.putBack(slots.actorType);
    return undefined;
  }
  const user: Open<OcsfUser> = {};
  if (name !== undefined) user.name = name;
  if (uid !== undefined) user.uid = uid;
  if (email !== undefined) user.email_addr = email;
  else if (name !== undefined && isEmail(name)) user.email_addr = name;
  if (fullName !== undefined) user.full_name = fullName;
  if (type === undefined) return user;
  const caption = userCaptions[typeId] ?? type;
  if (caption === 'Other') {
    reading.putBack(slots.actorType);
    return user;
  }
  user.type_id = typeId;
  user.type = caption;
  if (!sameWord(type, caption)) reading.putBack(slots.actorType);
  return user;
}

/**
 * The actor is an agent: its name and id are the app's; values that only a person has are put back.
 */
function agentFromActor(reading: Reading): People['agent'] {
  reading.putBack(slots.actorType);
  reading.putBack(slots.actorEmail);
  const name = reading.text(slots.actorName) ?? reading.text(slots.actorFullName);
  const uid = reading.text(slots.actorUid);
  if (reading.values[slots.actorName] !== undefined) reading.putBack(slots.actorFullName);
  // An actor with `agent_id` instead of `id` is still a single one.
  if (name !== undefined) reading.putBack(slots.agentName);
  if (uid !== undefined) reading.putBack(slots.agentUid);
  return appOf(name ?? reading.text(slots.agentName), uid ?? reading.text(slots.agentUid));
}

function namedAgent(reading: Reading): People['agent'] {
  return appOf(reading.text(slots.agentName), reading.text(slots.agentUid));
}

function appOf(name: string | undefined, uid: string | undefined): People['agent'] {
  if (name === undefined) return uid === undefined ? undefined : { app_uid: uid };
  return uid === undefined ? { app_name: name } : { app_name: name, app_uid: uid };
}

/** OCSF `actor`; undefined if no actor is known. */
export function actorFrom(
  { user, agent: app }: People,
  session: JsonObject | undefined,
): OcsfActor | undefined {
  if (user === undefined && app === undefined && session === undefined) return undefined;
  const actor: Open<OcsfActor> = {};
  if (user !== undefined) actor.user = user;
  if (app?.app_name !== undefined) actor.app_name = app.app_name;
  if (app?.app_uid !== undefined) actor.app_uid = app.app_uid;
  if (session !== undefined) actor.session = session;
  return actor;
}

/** OCSF `src_endpoint`; undefined if neither address nor host name is known. */
export function sourceOf(reading: Reading): OcsfEndpoint | undefined {
  const { values } = reading;
  const ip = reading.text(slots.srcIp);
  const hostname = reading.text(slots.srcHost);
  const port = values[slots.srcPort];
  const mac = reading.text(slots.srcMac);
  if (ip === undefined && hostname === undefined) {
    reading.putBack(slots.srcPort);
    reading.putBack(slots.srcMac);
    return undefined;
  }
  const endpoint: Open<OcsfEndpoint> = {};
  if (ip !== undefined) endpoint.ip = ip;
  if (hostname !== undefined) endpoint.hostname = hostname;
  if (typeof port === 'number') endpoint.port = port;
  if (mac !== undefined) endpoint.mac = mac;
  return endpoint;
}
