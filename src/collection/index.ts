// The entry point of src/collection: reads a configuration as changes.

export { keyParts } from './entities.ts';
export { forgetLeft } from './left.ts';
export { type CollectionDeps, CollectionPoller, type Inherited } from './poller.ts';
export { askSingle } from './reader.ts';
export type { FoundChange } from './records.ts';
export { type EntityState, parseCollectionCheckpoint, readEntityState } from './state.ts';
export { WholeList } from './whole-list.ts';
