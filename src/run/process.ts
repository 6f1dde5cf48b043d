// The second entry point of src/run: a running process, its backfills and requests.

export { listsOf } from './backfill.ts';
export { runAlone } from './backfill-alone.ts';
export { type CarriedState, exportState, importState } from './carry-state.ts';
export { agreeOnShards, closeToOldVersions, isImportLeft, refuseHalf } from './cluster.ts';
export { clusterFindings } from './cluster-findings.ts';
export { openDrains } from './drains.ts';
export { eventTap } from './event-tap.ts';
export { type Journey, openJourney } from './journey.ts';
export { type Move, makeMove } from './moves.ts';
export { oneJourney, reportEnd } from './one-journey.ts';
export { openOwnLog } from './own-log.ts';
export type { Made } from './reload-changes.ts';
export { listenForReloads, type ReloadRequests } from './reload-requests.ts';
export { runOn, runOnce } from './run-loops.ts';
export type { Running } from './running.ts';
export { workerVariable } from './shard-messages.ts';
export { textFormat, usualChoice } from './tap-forms.ts';
export { logFailedCommands } from './worker-commands.ts';
