// The entry point of src/parents: lists and objects that are requested per parent.

export { askObject } from './ask-object.ts';
export { Feed, type PlannedParents } from './feed.ts';
export { asksAnHour } from './next-turn.ts';
export { type ObjectRules, objectDigest } from './object-digest.ts';
export { ParentsPoller } from './poller.ts';
export { type ParentsState, parseParentsCheckpoint, readParentState } from './state.ts';
