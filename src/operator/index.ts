// The entry point of the package: all that commands need to operate a state.

export { rightsOf } from '../cluster/index.ts';
export type { Stored } from './adapter.ts';
export { kafkaOf } from './draining.ts';
export { type Operator, operatorOf, ownOperator, type RewoundStream } from './operator.ts';
export { ownJourney } from './own-journey.ts';
export { makeScratch } from './scratch.ts';
export { withCopy } from './stored.ts';
