// An OCSF event as Google's Unified Data Model (https://docs.cloud.google.com/chronicle, "UDM field
// list"), and a raw log. An event whose type does not fit its fields is rejected, so a type other
// than GENERIC_EVENT is used only if its required fields are present. Invariant: nothing is lost:
// the whole OCSF event is in `additional`.

import { actingUser, flatFactsOf, wholeSentence } from '../../../formats/texts.ts';
import {
  type DocumentForm,
  type Event,
  type Format,
  isObject,
  type OcsfEndpoint,
  type OcsfEvent,
  type OcsfUser,
} from '../../../src/contracts/index.ts';
import { jsonArrayOf } from '../../shared/lines.ts';
import { saneTimeMs } from '../../shared/sane-time.ts';

const networkActivity = 4001;
const authentication = 3002;
/** By OCSF's activity. */
const loginTypes: Readonly<Record<number, string>> = { 1: 'USER_LOGIN', 2: 'USER_LOGOUT' };
const ofResources = [6003, 3004];
/** By OCSF's activity. */
const resourceTypes = [
  null,
  'USER_RESOURCE_CREATION',
  'USER_RESOURCE_ACCESS',
  'USER_RESOURCE_UPDATE_CONTENT',
  'USER_RESOURCE_DELETION',
] as const;
const severities = [
  null,
  'INFORMATIONAL',
  'LOW',
  'MEDIUM',
  'HIGH',
  'CRITICAL',
  'CRITICAL',
] as const;

/** By OCSF's `action_id`; an observed action has none. */
const actions: Readonly<Record<number, string>> = {
  1: 'ALLOW',
  2: 'BLOCK',
  4: 'ALLOW_WITH_MODIFICATION',
};
const quarantined = 3;

type Noun = Readonly<Record<string, unknown>>;

/** Events as UDM. */
export const udmForm: DocumentForm = {
  contentType: 'application/json',
  encode: (event) => JSON.stringify({ udm: udmOf(event) }),
  join: jsonArrayOf,
};

/** Raw logs of this format's events, for a parser at the receiver. */
export function rawForm(format: Format): DocumentForm {
  return {
    contentType: 'application/json',
    encode(event) {
      const data = Buffer.from(format.encode(event)).toString('base64');
      const logEntryTime = new Date(saneTimeMs(event)).toISOString();
      return JSON.stringify({ data, logEntryTime });
    },
    join: jsonArrayOf,
  };
}

function udmOf(event: Event): object {
  const { ocsf } = event;
  const { metadata, src_endpoint: source, dst_endpoint: destination } = ocsf;
  const principal = noun({
    ...userNoun(actingUser(ocsf)),
    ...programNoun(ocsf),
    ...endpointNoun(source),
  });
  const target = noun({
    ...userNoun(ocsf.user),
    ...endpointNoun(destination),
    ...resourceNoun(ocsf),
    ...serviceNoun(ocsf),
  });
  const eventType = typeOf(ocsf, principal, target);
  return {
    metadata: {
      eventTimestamp: new Date(saneTimeMs(event)).toISOString(),
      eventType,
      vendorName: metadata.product.vendor_name ?? metadata.product.name,
      productName: metadata.product.name,
      productLogId: event.uid,
      productEventType: metadata.event_code ?? ocsf.type_name ?? String(ocsf.type_uid),
      description: wholeSentence(event),
    },
    principal,
    target,
    securityResult: [
      {
        severity: severities[ocsf.severity_id] ?? 'UNKNOWN_SEVERITY',
        ...verdictNoun(ocsf),
        summary: ocsf.status_detail ?? ocsf.status,
      },
    ],
    ...(isLogin(eventType) && { extensions: { auth: { type: 'AUTHTYPE_UNSPECIFIED' } } }),
    // Texts at the top level of a Struct are searchable; nested ones are not.
    additional: {
      class_name: ocsf.class_name,
      activity_name: ocsf.activity_name,
      status: ocsf.status,
      ...factTexts(ocsf),
      ocsf,
    },
  };
}

/** The facts that detection rules search; a rule compares texts only. */
function factTexts(ocsf: OcsfEvent): Noun {
  const facts = Object.entries(flatFactsOf(ocsf));
  return Object.fromEntries(facts.map(([name, value]) => [name, String(value)]));
}

function typeOf(ocsf: OcsfEvent, principal: Noun | undefined, target: Noun | undefined): string {
  const isMachine = (one: Noun | undefined) => one?.ip !== undefined || one?.hostname !== undefined;
  if (ocsf.class_uid === networkActivity && isMachine(principal) && isMachine(target)) {
    return 'NETWORK_CONNECTION';
  }
  // Both need the machine that the login comes from, and the user who logs in.
  if (ocsf.class_uid === authentication && isMachine(principal) && target?.user !== undefined) {
    return loginTypes[ocsf.activity_id] ?? 'USER_UNCATEGORIZED';
  }
  const type = ofResources.includes(ocsf.class_uid) ? resourceTypes[ocsf.activity_id] : null;
  const isWhole = principal?.user !== undefined && target?.resource !== undefined;
  return (isWhole && type) || 'GENERIC_EVENT';
}

function isLogin(eventType: string): boolean {
  return Object.values(loginTypes).includes(eventType);
}

/** An AI agent, or another acting program. */
function programNoun({ actor }: OcsfEvent): Noun {
  const name = actor?.app_name ?? actor?.app_uid;
  return name === undefined ? {} : { application: name };
}

/** The service of a login. */
function serviceNoun({ service, class_uid }: OcsfEvent): Noun {
  const name = isObject(service) && class_uid === authentication ? service.name : undefined;
  return typeof name === 'string' ? { application: name } : {};
}

/** The verdict, in UDM's term and in OCSF's. */
function verdictNoun({ action_id, action, disposition_id, disposition }: OcsfEvent): Noun {
  const details = disposition ?? action;
  const word = disposition_id === quarantined ? 'QUARANTINE' : actions[Number(action_id)];
  return {
    ...(word !== undefined && { action: [word] }),
    ...(typeof details === 'string' && { actionDetails: details }),
  };
}

function noun(members: Noun): Noun | undefined {
  return Object.values(members).some((value) => value !== undefined) ? members : undefined;
}

function userNoun(user: Pick<OcsfUser, 'uid' | 'name' | 'email_addr'> | undefined): Noun {
  if (user === undefined) return {};
  const { uid, name, email_addr: email } = user;
  if (uid === undefined && name === undefined && email === undefined) return {};
  return {
    user: {
      userid: uid,
      userDisplayName: name,
      ...(email !== undefined && { emailAddresses: [email] }),
    },
  };
}

function endpointNoun(endpoint: OcsfEndpoint | undefined): Noun {
  const { ip, hostname, port } = endpoint ?? {};
  return { ...(ip !== undefined && { ip: [ip] }), hostname, port };
}

function resourceNoun({ resources, entity }: OcsfEvent): Noun {
  const one = resources?.[0] ?? entity;
  if (!isObject(one)) return {};
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  const [name, id] = [text(one.name), text(one.uid)];
  if (name === undefined && id === undefined) return {};
  return { resource: { name: name ?? id, productObjectId: id, resourceSubtype: text(one.type) } };
}
