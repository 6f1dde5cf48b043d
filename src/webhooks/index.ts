// The entry point of src/webhooks: receives deliveries in place of polls.

export { isConcerned } from './concerns.ts';
export { Listeners } from './listener.ts';
export { type PushDeps, PushPoller } from './poller.ts';
