// The entry point of src/archive: layout, keys, notes and proven reading, and the store that an archive is in.

export {
  type BucketSettings,
  lockText,
  type ObjectLock,
  type ObjectStore,
  openDirectory,
  openStore,
} from '../objects/index.ts';
export { type WitnessSettings, witnessFlaw, witnessing } from './anchors/witnesses.ts';
export { type Checkpoint, checkpointText, parseCheckpoint } from './checkpoint.ts';
export { isClaimedBy, staleMsOf } from './claim.ts';
export type { ArchiveComparison } from './comparison.ts';
export { signedFacts } from './cut-signature.ts';
export type { PageEntry } from './entries.ts';
export { movedMark } from './heads.ts';
export { cutsPrefix, encodeLakeMade, type LakeMade, type LakeObject } from './lake-cuts.ts';
export { acceptsByDefault, checkpointPath, manifestPath, parseManifest } from './layout.ts';
export { keyOfLog, shardOfLog, signerOfLog } from './log-name.ts';
export { entriesOf, loggedEntries, sizeOf } from './logged.ts';
export { rootAt, rootOf } from './merkle.ts';
export { newestPages, signedReader } from './newest-pages.ts';
export {
  openNote,
  parseNote,
  parseSigningKey,
  parseVkey,
  parseWitnessKey,
  type Signer,
  signingKeyText,
  signNote,
  type Verifier,
  verifierOfPem,
  withoutFence,
} from './note.ts';
export { ProvenReader } from './proven-reader.ts';
export { ArchiveReader, type SignedHead } from './reader.ts';
export {
  operatorFlaw,
  type SigningSettings,
  signerOf,
  signingFlaw,
  signingKeys,
  signingSettings,
} from './signing.ts';
export { readSmall } from './small-objects.ts';
export { StoredLakeCuts } from './stored-lake-cuts.ts';
