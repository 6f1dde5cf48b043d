// Log events of the first stage: upstream, tokens, streams, collections, webhooks.

import type { EventDeclarations } from './declaration.ts';

/** Events of the first stage, by name. */
export const readingEvents = {
  token_failed: {
    level: 'warn',
    fields: ['upstream', 'error', 'next', 'retry_in_ms'],
    meaning:
      'The token endpoint issued no access token. sluice requests one again after `retry_in_ms`.',
  },
  rate_limit_reset_ignored: {
    level: 'warn',
    fields: ['upstream', 'path', 'next'],
    meaning: 'A response named a rate limit reset more than a day away. sluice ignores the header.',
  },
  endpoint_end_announced: {
    level: 'warn',
    fields: [
      ...(['upstream', 'endpoint', 'ends', 'days_left'] as const),
      ...(['deprecation', 'deprecation_header', 'sunset', 'link'] as const),
    ],
    meaning: 'A response header (`Sunset` or `Deprecation`) announces the end of an endpoint.',
    next: 'Plan the move to the successor: see docs/api-end.md.',
  },
  predecessor_entity_damaged: {
    level: 'warn',
    fields: ['stream', 'entity', 'successor'],
    meaning:
      'At the first full scan of a successor, the stored state of one entity of its predecessor could not be read. The successor reports this entity as created, and the predecessor halts.',
    next: 'See the error of the predecessor in `status`.',
  },
  stream_halted: {
    level: 'error',
    fields: ['stream', 'code', 'error', 'next', 'wait_ms', '…'],
    meaning:
      'A stream stopped advancing: its upstream refuses requests, or its checkpoint does not fit. sluice retries after `wait_ms`. Other streams continue.',
  },
  stream_failed: {
    level: 'warn',
    fields: ['stream', 'code', 'error', 'next', 'wait_ms', '…'],
    meaning: 'A poll failed. sluice polls again after `wait_ms`. No event is lost.',
  },
  stream_partly_read: {
    level: 'error',
    fields: ['stream', 'code', 'error', 'next'],
    meaning: 'The stream advances, but the configured paging may skip records.',
  },
  stream_recovered: {
    level: 'info',
    fields: ['stream'],
    meaning: 'A failing or halted stream can be read again.',
  },
  stream_superseded: {
    level: 'info',
    fields: ['stream', 'error', 'next'],
    meaning:
      'A stream cannot be read any more, and its successor delivers and is read: its API has ended, which is no fault. Once for each end.',
  },
  pair_given_up: {
    level: 'warn',
    fields: ['source', 'predecessor', 'phase', 'next'],
    meaning:
      'A source lost its succeeds before the cutover. Records that both sources read can be delivered twice.',
  },
  overlap_shortened: {
    level: 'info',
    fields: ['source', 'predecessor', 'compared_from', 'overlap_from', 'next'],
    meaning:
      'A successor is compared from a later time than overlap says, since the identities that are stored of its predecessor reach back no further.',
  },
  stream_refused_after_end: {
    level: 'debug',
    fields: ['stream', 'code', 'error', 'next', 'wait_ms', '…'],
    meaning: 'A stream of an API that has ended was refused again. It is no fault.',
  },
  list_order_learned: {
    level: 'info',
    fields: ['stream', 'before', 'order'],
    meaning: 'sluice learned in which order upstream lists the records.',
  },
  paging_changed: {
    level: 'info',
    fields: ['stream'],
    meaning:
      'The config has another paging. sluice reads the list again from its start, without repeats.',
  },
  sorting_refused: {
    level: 'warn',
    fields: ['stream', 'error'],
    meaning: 'Upstream refused the sort parameter. sluice requests pages without one.',
    next: 'Remove `order_by` of the source if the endpoint does not sort.',
  },
  page_limit_lowered: {
    level: 'warn',
    fields: ['stream', 'limit', 'instead'],
    meaning: 'Upstream refused the page limit. sluice requests smaller pages.',
    next: 'Set `page_limit` of the source to the value of `instead`.',
  },
  page_limit_raised: {
    level: 'info',
    fields: ['stream', 'limit', 'instead_of'],
    meaning: 'Upstream accepts a larger page limit again.',
  },
  empty_pages_ended: {
    level: 'warn',
    fields: ['stream'],
    meaning:
      'Upstream serves empty pages with a next page after the last record. sluice treats the first one as the end, and follows one per poll.',
  },
  full_scan_cut: {
    level: 'warn',
    fields: ['stream', 'error'],
    meaning:
      'A full scan of the list ended at a row that upstream does not serve. Records after that row were not compared in this scan. New records are read.',
    next: 'Report the error to the vendor.',
  },
  rows_moved: {
    level: 'info',
    fields: ['stream'],
    meaning:
      'Rows moved while sluice read the list. sluice reads the list again from its start, without repeats.',
  },
  cursor_refused: {
    level: 'warn',
    fields: ['stream', 'error'],
    meaning:
      'Upstream no longer accepts the stored cursor, offset or address, or seems to answer it with another position of the list.',
    next: 'After a refusal, `on_cursor_invalid` of the source decides: a new read without repeats, a halt, or a gap that is reported. Otherwise sluice reads the list again without repeats.',
  },
  records_not_utf8: {
    level: 'warn',
    fields: ['stream', 'next'],
    meaning: 'Records contain bytes that are not UTF-8. Reported once per stream.',
  },
  removals_held: {
    level: 'warn',
    fields: ['stream', 'missing', 'known'],
    meaning:
      'Many entities are missing at once (`brake`). sluice reports none as deleted until more reads agree.',
    next: 'Check the rights of the upstream account. If the entities are really deleted, wait.',
  },
  values_flapped: {
    level: 'info',
    fields: ['stream', 'flaps'],
    meaning: 'Values changed and changed back before they were confirmed. Nothing was reported.',
  },
  parent_id_skipped: {
    level: 'warn',
    fields: ['stream', 'id_began'],
    meaning: 'An id cannot be part of a path (`.`, `..` or empty). sluice skips that parent.',
    next: 'Check `each.id` of the source.',
  },
  lookup_failed: {
    level: 'warn',
    fields: ['lookup', 'error'],
    meaning: 'A look-up table could not be read. Events carry numbers without names.',
    next: 'Check the right of the upstream account to read the look-up.',
  },
  lookups_failed: {
    level: 'debug',
    fields: ['error'],
    meaning: 'Reading or storing the look-up tables failed. sluice reads them again.',
  },
  silence_check_failed: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The check of `expect_every` and `expect_volume` failed. sluice checks again.',
  },
  trail_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'The comparison of changes with the audit trail failed. sluice compares again later.',
  },
  drift_memory_lost: {
    level: 'warn',
    fields: [],
    meaning:
      'The stored state of the drift detection could not be read. The detection starts again with an empty one.',
    next: 'Nothing after one line. If the line repeats, check the disk.',
  },
  drift_memory_full: {
    level: 'warn',
    fields: ['kind', 'remembered'],
    meaning:
      'More changes or trail events are open than the drift detection keeps. The oldest are not judged.',
    next: 'Set a shorter `watch.drift.within`, or watch fewer sources.',
  },
  webhook_listening: {
    level: 'info',
    fields: ['source', 'address'],
    meaning: 'The listener of a webhook source accepts deliveries.',
  },
  webhook_listener_failed: {
    level: 'warn',
    fields: ['source', 'error'],
    meaning: 'The listener of a webhook source reported an error.',
    next: 'Check `listen` of the source: address, port and rights.',
  },
  webhook_certificate_not_loaded: {
    level: 'warn',
    fields: ['source', 'error'],
    meaning: 'The renewed certificate could not be loaded. The listener keeps the old one.',
    next: 'Check the files in `tls` of the source.',
  },
  webhook_delivery_failed: {
    level: 'error',
    fields: ['stream', 'error'],
    meaning:
      'A delivery could not be stored. The sender got no 2xx response and has to send the delivery again.',
    next: 'Check the disk and the state directory.',
  },
  webhook_delivery_rejected: {
    level: 'warn',
    fields: ['stream', 'why'],
    meaning:
      'A delivery was rejected: its signature, age, size or body. Further rejections of this kind are counted only.',
    next: 'If your platform sent the delivery, check `secret`, `signed_form` and `timestamp_header`.',
  },
} as const satisfies EventDeclarations;
