// The second entry point of src/hold: opens, repairs and moves the spool.

export { importBackfillFiles } from './backfill-files.ts';
export {
  type BackfillProgress,
  type BackfillRequest,
  backfillMemory,
  backfillsAmong,
  backfillsIn,
  carryOutAbout,
  type Past,
  readProgress,
} from './backfills.ts';
export { putDatabase, rowsIn } from './carry.ts';
export { forgetDelivered } from './delivered.ts';
export { findOlder, type Older } from './older.ts';
export { Rebuilding, type Rebuilt } from './rebuild.ts';
export { type Regrouping, regroup } from './regroup.ts';
export type { Takes } from './regroup-pages.ts';
export { type Repaired, type RepairSettings, repairDatabase, type StreamReset } from './repair.ts';
export { withReserveOf } from './reserve.ts';
export { type OwnSpool, openSpool, type SpoolLog, type SpoolSettings } from './spool.ts';
