// Google SecOps' Unified Data Model as far as an import looks at it (docs.cloud.google.com/chronicle, "UDM usage guide"
// and "UDM field list"): names it knows, lists, event types and their required fields. A name it does not know is
// refused, as with every JSON form of a protocol buffer.

/** A UDM event, names in camel case. */
export interface UdmEvent {
  readonly metadata: { readonly [name: string]: unknown };
  readonly [name: string]: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same value with all names in camel case: an import takes both spellings. */
export function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.replace(/_([a-z0-9])/g, (_, deadLetter: string) => deadLetter.toUpperCase()),
      // What a customer may name freely keeps its names.
      name === 'additional' ? inner : camelCased(inner),
    ]),
  );
}

const words = (text: string) => new Set(text.trim().split(/\s+/));
const nouns = ['principal', 'src', 'target', 'observer'];
const nounLists = ['intermediary', 'about'];
const eventNames = words(
  'metadata additional principal src target intermediary observer about securityResult network extensions extracted',
);
const metadataNames = words(
  'id productLogId eventTimestamp collectedTimestamp ingestedTimestamp eventType vendorName productName productVersion productEventType productDeploymentId description urlBackToProduct ingestionLabels tags enrichmentState logType baseLabels enrichmentLabels structuredFields parserVersion confidence',
);
const nounNames = words(
  'hostname domain artifact urlMetadata browser assetId user userManagementChain group process processAncestors asset ip natIp port natPort mac administrativeDomain namespace url file email registry application platform platformVersion platformPatchLevel cloud location ipLocation ipGeoArtifact resource resourceAncestors labels objectReference investigation network securityResult',
);
const resultNames = words(
  'about category categoryDetails threatName threatId threatIdNamespace threatFeedName threatStatus threatVerdict ruleName ruleId ruleVersion ruleType ruleAuthor ruleLabels ruleSet ruleSetDisplayName alertState detectionFields detectionDepth outcomes variables summary description action actionDetails severity severityDetails confidence confidenceDetails confidenceScore priority priorityDetails riskScore urlBackToProduct attackDetails firstDiscoveredTime lastDiscoveredTime lastUpdatedTime verdictInfo associations campaigns reports analyticsMetadata',
);
const lists = words('ip natIp mac labels userManagementChain processAncestors resourceAncestors');
const severities = words('UNKNOWN_SEVERITY INFORMATIONAL ERROR NONE LOW MEDIUM HIGH CRITICAL');
const actions = words(
  'UNKNOWN_ACTION ALLOW BLOCK ALLOW_WITH_MODIFICATION QUARANTINE FAIL CHALLENGE',
);
const eventTypes = words(
  `GENERIC_EVENT USER_LOGIN USER_LOGOUT USER_CREATION USER_DELETION USER_CHANGE_PASSWORD USER_CHANGE_PERMISSIONS USER_UNCATEGORIZED USER_STATS USER_BADGE_IN USER_COMMUNICATION USER_RESOURCE_ACCESS USER_RESOURCE_CREATION USER_RESOURCE_DELETION USER_RESOURCE_UPDATE_CONTENT USER_RESOURCE_UPDATE_PERMISSIONS
   RESOURCE_CREATION RESOURCE_DELETION RESOURCE_PERMISSIONS_CHANGE RESOURCE_READ RESOURCE_WRITTEN SETTING_CREATION SETTING_DELETION SETTING_MODIFICATION SETTING_UNCATEGORIZED GROUP_CREATION GROUP_DELETION GROUP_MODIFICATION GROUP_UNCATEGORIZED
   NETWORK_CONNECTION NETWORK_DNS NETWORK_HTTP NETWORK_DHCP NETWORK_FLOW NETWORK_FTP NETWORK_SMTP NETWORK_UNCATEGORIZED STATUS_HEARTBEAT STATUS_STARTUP STATUS_SHUTDOWN STATUS_UPDATE STATUS_UNCATEGORIZED SCAN_HOST SCAN_NETWORK SCAN_UNCATEGORIZED SCAN_VULN_HOST SCAN_FILE SERVICE_MODIFICATION SERVICE_START SERVICE_STOP SERVICE_UNSPECIFIED PROCESS_LAUNCH PROCESS_UNCATEGORIZED FILE_UNCATEGORIZED DEVICE_CONFIG_UPDATE DEVICE_FIRMWARE_UPDATE EMAIL_TRANSACTION ANALYST_UPDATE_VERDICT`,
);

/** What an import would refuse about an event with camel-case names; null: nothing. */
export function flawOfUdm(event: unknown): string | null {
  if (!isObject(event)) return 'udm is missing';
  const { metadata, securityResult } = event;
  if (!isObject(metadata)) return 'metadata is required';
  return (
    unknownIn(event, eventNames, 'udm') ??
    unknownIn(metadata, metadataNames, 'metadata') ??
    flawOfMetadata(metadata) ??
    nouns.map((name) => flawOfNoun(event[name], name)).find(Boolean) ??
    nounLists.map((name) => flawOfEach(event[name], name, flawOfNoun)).find(Boolean) ??
    flawOfEach(securityResult, 'securityResult', flawOfResult) ??
    missingFor(String(metadata.eventType), event)
  );
}

function flawOfMetadata({ eventTimestamp, eventType }: Fields): string | null {
  const isTime =
    typeof eventTimestamp === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.test(eventTimestamp) &&
    !Number.isNaN(Date.parse(eventTimestamp));
  if (!isTime) return 'metadata.event_timestamp is required';
  return typeof eventType === 'string' && eventTypes.has(eventType)
    ? null
    : `metadata.event_type: invalid value ${JSON.stringify(eventType)}`;
}

function flawOfNoun(noun: unknown, at: string): string | null {
  if (noun === undefined) return null;
  if (!isObject(noun)) return `${at} is no message`;
  const unknown = unknownIn(noun, nounNames, at);
  if (unknown !== null) return unknown;
  for (const [name, value] of Object.entries(noun)) {
    if (lists.has(name) !== Array.isArray(value)) return `${at}.${name}: list expected or refused`;
  }
  const { port } = noun;
  const isPort = port === undefined || (Number.isInteger(port) && Number(port) >= 0);
  return isPort ? null : `${at}.port is no int32`;
}

function flawOfResult(result: unknown, at: string): string | null {
  if (!isObject(result)) return `${at} is no message`;
  const { severity = 'NONE', action = [] } = result;
  if (!severities.has(String(severity))) return `${at}.severity: invalid value ${severity}`;
  if (!Array.isArray(action) || !action.every((one) => actions.has(String(one))))
    return `${at}.action: invalid value`;
  return unknownIn(result, resultNames, at);
}

function flawOfEach(
  items: unknown,
  at: string,
  flawOf: (item: unknown, at: string) => string | null,
): string | null {
  if (items === undefined) return null;
  if (!Array.isArray(items)) return `${at} is no list`;
  return items.map((item, i) => flawOf(item, `${at}[${i}]`)).find(Boolean) ?? null;
}

function unknownIn(fields: Fields, known: ReadonlySet<string>, at: string): string | null {
  const name = Object.keys(fields).find((one) => !known.has(one));
  return name === undefined
    ? null
    : `Invalid JSON payload received. Unknown name "${name}" at ${at}`;
}

/** What the guide demands of some types beside a time. */
function missingFor(type: string, { principal, target }: Fields): string | null {
  const has = (noun: unknown, names: readonly string[]) =>
    isObject(noun) && names.some((name) => noun[name] !== undefined);
  const machine = ['ip', 'hostname', 'mac', 'assetId', 'asset'];
  if (type.startsWith('NETWORK_') && !has(principal, machine))
    return `${type}: principal machine is required`;
  if (type === 'NETWORK_CONNECTION' && !has(target, machine))
    return `${type}: target machine is required`;
  if (type.startsWith('USER_RESOURCE_'))
    return has(principal, ['user']) && has(target, ['resource', 'file', 'application', 'url'])
      ? null
      : `${type}: principal user and target resource are required`;
  if (/^(?:RESOURCE|SETTING)_/.test(type) && !has(target, ['resource', 'application', 'hostname']))
    return `${type}: target resource is required`;
  if (type.startsWith('USER_') && !has(principal, ['user']) && !has(target, ['user']))
    return `${type}: a user is required`;
  return null;
}
