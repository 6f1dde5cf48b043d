// Log events of the archive: checkpoints, retention, erasure, legal holds, comparison with upstream.

import type { EventDeclarations } from './declaration.ts';

/** Events of the archive, by name. */
export const archiveEvents = {
  anchor_failed: {
    level: 'warn',
    fields: ['code', 'error', 'next'],
    meaning: 'A witness or time-stamp authority did not sign a checkpoint. sluice retries.',
  },
  anchor_recovered: {
    level: 'info',
    fields: ['kind'],
    meaning: 'Checkpoints are signed by the witness or time-stamp authority again.',
  },
  anchor_not_entered: {
    level: 'warn',
    fields: ['object', 'error', 'next'],
    meaning:
      'A time stamp or cosignature in the store does not fit the checkpoint. sluice does not add an entry for this object to the archive.',
  },
  archive_close_failed: {
    level: 'warn',
    fields: ['sink', 'code', 'error'],
    meaning: 'The archive could not be closed cleanly. The next start completes it.',
  },
  archive_compared: {
    level: 'info',
    fields: [
      ...(['sink', 'stream', 'from', 'to', 'upstream'] as const),
      ...(['archived', 'dropped', 'missing', 'changed'] as const),
    ],
    meaning: 'The archive was compared with the records that upstream serves (`compare_every`).',
    next: 'If `missing` or `changed` is not 0, see the events `integrity_violation`.',
  },
  archive_compare_failed: {
    level: 'warn',
    fields: ['sink', 'error'],
    meaning: 'The comparison of the archive with upstream failed. sluice tries again.',
  },
  clock_differs: {
    level: 'warn',
    fields: ['stream', 'next'],
    meaning:
      'The clock of this machine differs from the clock of upstream. Archive entries carry the times of this machine.',
  },
  archive_bodies_deleted: {
    level: 'info',
    fields: ['objects'],
    meaning: 'Retention deleted page bodies. Their entries and proofs stay.',
  },
  archive_object_not_deleted: {
    level: 'warn',
    fields: ['object', 'message', 'next'],
    meaning: 'An object is past its retention and could not be deleted.',
  },
  archive_segment_locked: {
    level: 'warn',
    fields: ['object', 'message'],
    meaning:
      'A segment is past its retention and is locked in the object store until a later time.',
    next: 'Nothing: sluice deletes the segment when the lock ends.',
  },
  retention_paused: {
    level: 'warn',
    fields: ['error', 'next'],
    meaning: 'Retention deleted nothing, because legal holds or a request could not be read.',
  },
  prune_request_ignored: {
    level: 'warn',
    fields: ['error', 'next'],
    meaning: 'A request to prune in the object store is malformed and ignored.',
  },
  prune_request_not_removed: {
    level: 'warn',
    fields: ['message', 'next'],
    meaning:
      'A completed request to prune could not be removed. sluice reads the request again, which changes nothing.',
  },
  archive_erased: {
    level: 'info',
    fields: ['segments', 'lake'],
    meaning: 'A record was erased from the archive. An entry of the archive documents the erasure.',
  },
  archive_erase_failed: {
    level: 'warn',
    fields: ['request', 'error', 'next'],
    meaning: 'A record could not be erased from the archive. The request stays.',
  },
  hold_not_released: {
    level: 'warn',
    fields: ['hold', 'error', 'next'],
    meaning: 'A legal hold was not released, because the request has no accepted signature.',
  },
  hold_file_changed: {
    level: 'warn',
    fields: ['hold', 'next'],
    meaning: 'The file of a legal hold was changed. The hold stays as the archive entered it.',
  },
  lake_cut_delayed: {
    level: 'warn',
    fields: ['object', 'error', 'next'],
    meaning: 'A Parquet cut of the lake waits, because entries of the archive cannot be read now.',
  },
  lake_cut_rejected: {
    level: 'warn',
    fields: ['object', 'error', 'next'],
    meaning:
      'A Parquet cut of the lake does not match the archive. sluice adds no entry for this cut.',
  },
  lake_cut_ignored: {
    level: 'warn',
    fields: ['object', 'error', 'next'],
    meaning:
      'sluice did not write a Parquet cut that is in the lake. Its events are written again if they are still stored.',
  },
} as const satisfies EventDeclarations;
