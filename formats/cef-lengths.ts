// The longest value that each CEF field may have, in characters, from the dictionary of the ArcSight CEF Implementation
// Standard (version 27). Only the fields that sluice writes; a test holds them against the dictionary. Where a whole
// line must be shortened, the same limits are lowered, so that the longest values give way first.

/** Lengths of the header fields (Standard, "Header information"). */
export const headerLengths = {
  deviceVendor: 63,
  deviceProduct: 63,
  deviceVersion: 31,
  deviceEventClassId: 1023,
  name: 512,
} as const;

/** Lengths of the extension fields that hold text (Standard, "Producer dictionary"; `sluice…` are our own). */
export const extensionLengths = {
  act: 63,
  app: 31,
  cat: 1023,
  cs1: 4000,
  cs2: 4000,
  cs3: 4000,
  cs4: 4000,
  cs5: 4000,
  destinationDnsDomain: 255,
  destinationServiceName: 1023,
  deviceExternalId: 255,
  deviceFacility: 1023,
  deviceInboundInterface: 128,
  deviceOutboundInterface: 128,
  dhost: 1023,
  duid: 1023,
  duser: 1023,
  dvchost: 100,
  externalId: 40,
  fileHash: 255,
  filePath: 1023,
  fname: 1023,
  frameworkName: 256,
  msg: 1023,
  outcome: 63,
  proto: 31,
  reason: 1023,
  request: 1023,
  requestClientApplication: 1023,
  requestContext: 2048,
  requestMethod: 1023,
  shost: 1023,
  sluiceCorrelationId: 1023,
  sluiceDnsQueryType: 63,
  sluiceRequestId: 1023,
  sluiceUnmapped: 4000,
  sourceServiceName: 1023,
  spriv: 1023,
  suid: 1023,
  suser: 1023,
  threatAttackID: 32,
} as const;

/** The same table of limits, each perhaps lower than the dictionary's. */
export type Lengths = { readonly [Key in keyof typeof extensionLengths]: number };

/** The dictionary's limits, none above `lengthMax`. */
export function lengthsUpTo(lengthMax: number): Lengths {
  const lowered = Object.entries(extensionLengths).map(([key, length]) => [
    key,
    Math.min(length, lengthMax),
  ]);
  // The keys are those of the table above, which fromEntries cannot know.
  return Object.fromEntries(lowered) as Lengths;
}
