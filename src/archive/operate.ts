// Entry point of src/archive for operators: holds, requests to erase, retention, rotation of keys.

export { type ReadRequest, signRequest } from './authority.ts';
export { type EnteredHold, enteredHold } from './entered-holds.ts';
export { encodeRequest, requestPath } from './erasure-request.ts';
export { encodeHold, type Hold, holdPath, holdsIn, isHeld, releaseOf } from './holds.ts';
export { encodeWish, prunePath, pruneWish, segmentsBefore } from './retention.ts';
export { rotateKey } from './rotate.ts';
