// The entry point of src/succession: pairs a source with its successor.

export { comparedFrom } from './compared-from.ts';
export { namedByEnd } from './end-of-api.ts';
export { deadPredecessor, earliestOf, firstWalk, heldBack } from './first-walk.ts';
export { inheritedFor } from './inherited.ts';
export { type Pairing, pairingsOf, type SideOfPair, sideIn } from './pairing.ts';
export { givenUpNext, settlePairs } from './settle.ts';
export { delivers, pairedEntry } from './side.ts';
