// Entry point of src/archive for auditors: verify, prove, export, reconcile. Imports no writer.

export { lakeEvents } from '../parquet/index.ts';
export { authoritiesIn } from './anchors/time-stamp.ts';
export { type Copy, copiesOf, recordOf } from './copies.ts';
export { enteredBytes, enteredLake } from './entered-lake.ts';
export { exportRange } from './export.ts';
export { isLakeBehind, type LakeCopy, lakeCopiesOf } from './lake-copies.ts';
export { findMatch } from './match.ts';
export { archivedPage, indexBehind, type PlaceInSpool } from './pages.ts';
export { checkProof, encodeProof } from './proof.ts';
export { type ProvenRecord, proofOf, proveRecord } from './prove.ts';
export { dayOfCut, ProvenCuts, readSpanOf } from './proven-cuts.ts';
export { archived, erased, listedFlag, markArchived, type ReconcileWishes } from './reconcile.ts';
export { keptRecords } from './records.ts';
export { readUidList } from './uid-list.ts';
export { TooManyUids, UidTable, uidsMax } from './uid-table.ts';
export type {
  Break,
  Compared,
  ConfigChange,
  Erasure,
  Report,
  ReportedGap,
  SiblingSeen,
  StreamDay,
  SuccessionSeen,
  VerifiedStream,
  WitnessedSize,
} from './verify/findings.ts';
export { type VerifyOptions, verifyArchive } from './verify/verify.ts';
