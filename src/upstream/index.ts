// The entry point of src/upstream: clients, throttles and tokens of an upstream API.

export { EndsByUpstream } from './announced-ends.ts';
export { UpstreamClient } from './client.ts';
export {
  type AnnouncedEnd,
  type DateOfEnd,
  daysLeft,
  endOrigins,
  endsKey,
  eventDays,
  type HeldEnds,
  heldJson,
  noticeDays,
  parseEndsHeld,
  type UpstreamEnd,
  upstreamAt,
  upstreamEnd,
} from './ends.ts';
export {
  isCompanyId,
  tokenUrl,
  type UpstreamBlock,
  type UpstreamSettings,
  upstreamFields,
  upstreamFlaws,
} from './settings.ts';
export { Throttle } from './throttle.ts';
export { openThrottles, type Permit, type Throttles } from './throttles.ts';
export { openTokens, type Tokens } from './tokens.ts';
