// The entry point of src/drift: changes without an audit event.

export { Drift } from './drift.ts';
export { driftKey } from './state.ts';
