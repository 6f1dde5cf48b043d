// Log events of the process: start and end, config, commands of operators, backfills, status page, log and metrics.

import type { EventDeclarations } from './declaration.ts';

const changes = [
  ...(['streams_added', 'streams_changed', 'streams_removed', 'streams_unchanged'] as const),
  ...(['sinks_added', 'sinks_changed', 'sinks_removed', 'sinks_unchanged'] as const),
  ...(['added', 'changed', 'removed', 'unchanged'] as const),
] as const;

/** Events of the process, by name. */
export const processEvents = {
  running: {
    level: 'info',
    fields: [],
    meaning: 'sluice polls and sends.',
  },
  stopping: {
    level: 'info',
    fields: ['why', 'within_ms'],
    meaning: 'sluice stops. It delivers stored events first, for `within_ms` at most.',
  },
  stopped: {
    level: 'info',
    fields: ['why', 'exit_code'],
    meaning: 'sluice has stopped. Events that were not delivered are in the state.',
  },
  stopped_at_once: {
    level: 'warn',
    fields: [],
    meaning: 'A second signal arrived. sluice ends without delivery of the rest. No event is lost.',
  },
  sluice_failed: {
    level: 'error',
    fields: ['shard', 'code', 'error', 'next'],
    meaning: 'sluice ends with an error.',
  },
  runtime_warning: {
    level: 'debug',
    fields: ['warning', 'message'],
    meaning: 'A warning of Node.js or of a library.',
  },
  stream_resumed: {
    level: 'info',
    fields: ['stream', 'order', 'at'],
    meaning: 'At start: the stream resumes after its checkpoint, stored at `at`.',
  },
  stream_started: {
    level: 'info',
    fields: ['stream', 'start'],
    meaning: 'At start: the stream has no checkpoint and starts as `start` of its source says.',
  },
  source_resumed: {
    level: 'info',
    fields: ['source', 'resume', 'start'],
    meaning:
      'At start, if there are more than 50 streams: streams of a source that resume or start.',
  },
  sink_resumed: {
    level: 'info',
    fields: ['sink', 'position', 'held'],
    meaning: 'At start: the sink resumes at its position; `held` events wait.',
  },
  sink_caught_up: {
    level: 'info',
    fields: ['sink', 'position'],
    meaning: 'At the end: the sink has delivered all events.',
  },
  sink_not_caught_up: {
    level: 'warn',
    fields: ['sink', 'position', 'held', 'error'],
    meaning: 'At the end: events wait for the sink. They stay in the state.',
    next: 'Start sluice again. A longer `shutdown.timeout` delivers more before the end.',
  },
  config_key_ignored: {
    level: 'warn',
    fields: [],
    meaning: 'A key of the config has no effect any more.',
    next: 'Remove the key.',
  },
  secret_command_failed: {
    level: 'warn',
    fields: ['error', 'next'],
    meaning:
      'A command of `${exec:…}` failed. Its last value stays in use; sluice runs it again before the next token request or after a refused credential.',
    next: 'Run the command as the user of sluice.',
  },
  config_reloaded: {
    level: 'info',
    fields: ['reason', ...changes],
    meaning: 'The changed config is in effect.',
  },
  companies_removed: {
    level: 'warn',
    fields: ['upstream', 'file', 'removed', 'before', 'companies', 'next'],
    meaning:
      'At start: a companies file lacks companies that the last run from this state directory had.',
  },
  config_unchanged: {
    level: 'info',
    fields: ['reason', ...changes],
    meaning: 'The config was read again and has no change.',
  },
  config_flaw: {
    level: 'error',
    fields: ['code', 'error'],
    meaning: 'One error of a changed config.',
    next: 'Correct the key at the position in the line.',
  },
  config_not_reloaded: {
    level: 'error',
    fields: ['code', 'error', 'flaws', 'next', 'reason'],
    meaning:
      'The changed config was refused. sluice keeps the running config, and tries the changed one again every 30 s.',
  },
  running_config_not_noted: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The note for commands about the running config could not be written.',
  },
  upstream_ends: {
    level: 'warn',
    fields: ['upstream', 'ends', 'days_left', 'endpoint', 'next', '…'],
    meaning: 'An upstream ends in 90, 30, 7 or 1 days, or today. Once per date.',
  },
  upstream_ends_moved: {
    level: 'info',
    fields: ['upstream', 'ends', 'days_left', 'endpoint', '…'],
    meaning:
      'An upstream ends, and each of its sources has a successor that delivers and is read. Once per date.',
  },
  upstream_end_passed: {
    level: 'warn',
    fields: ['upstream', 'ends', 'next'],
    meaning: 'The date at which an upstream ends is in the past. Polling continues.',
  },
  upstream_end_not_stored: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The end of an upstream could not be stored. sluice tries again.',
  },
  retry_requested: {
    level: 'info',
    fields: ['name'],
    meaning: 'An operator requested a retry of a stream or sink (`sluice retry`).',
  },
  suspects_dead_lettered: {
    level: 'info',
    fields: ['sink', 'suspects'],
    meaning: 'An operator moved suspects to the dead letters (`sluice dead-letters add`).',
  },
  stream_rewound: {
    level: 'info',
    fields: ['stream'],
    meaning: 'An operator moved a checkpoint back (`sluice checkpoint rewind`).',
  },
  stream_reset: {
    level: 'info',
    fields: ['stream'],
    meaning: 'An operator removed a checkpoint (`sluice checkpoint reset`).',
  },
  dead_letters_moved: {
    level: 'info',
    fields: ['does'],
    meaning: 'An operator retried or dropped dead letters.',
  },
  removed_sink_given_up: {
    level: 'info',
    fields: ['sink'],
    meaning: 'An operator gave up the events of a removed sink (`sluice sinks remove`).',
  },
  succession_changed: {
    level: 'info',
    fields: ['source', 'phase'],
    meaning: 'An operator cut over to a successor, or rolled back.',
  },
  request_failed: {
    level: 'debug',
    fields: ['error'],
    meaning: 'A request of a command failed. The command shows the error.',
  },
  requests_not_read: {
    level: 'debug',
    fields: ['error'],
    meaning: 'Requests of commands could not be read from the state. sluice reads them again.',
  },
  backfill_started: {
    level: 'info',
    fields: ['backfill', 'source', 'from', 'to'],
    meaning: 'A backfill started or resumed.',
  },
  backfill_progress: {
    level: 'info',
    fields: [
      ...(['state', 'read', 'held', 'untimed', 'to_deliver', 'sink', 'error', 'reached'] as const),
      ...(['percent', 'records_per_s', 'left'] as const),
    ],
    meaning:
      'Progress of `sluice backfill`, where stderr is not a terminal. The backfill waits for `sink`, which has accepted the least; `error`: its last failure.',
  },
  backfill_done: {
    level: 'info',
    fields: ['backfill'],
    meaning: 'A backfill is complete: every sink has all of its events.',
  },
  backfill_stopped: {
    level: 'info',
    fields: ['backfill'],
    meaning: 'A backfill stopped because sluice stopped or the operator cancelled the backfill.',
  },
  backfill_failed: {
    level: 'error',
    fields: ['backfill', 'error', 'next'],
    meaning: 'A backfill failed.',
  },
  backfill_not_stored: {
    level: 'debug',
    fields: ['backfill', 'error'],
    meaning: 'The end of a backfill could not be stored. sluice looks at the request again.',
  },
  status_page_listening: {
    level: 'info',
    fields: ['url'],
    meaning: 'The status page, metrics and health endpoints are served at `url`.',
  },
  status_server_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'The status server reported an error.',
    next: 'Check `status.listen`.',
  },
  standby_page_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'A process on standby could not serve its status page.',
    next: 'Check `status.listen`.',
  },
  status_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'The status response could not be rendered. Polling and sending continue.',
    next: 'If the line repeats, report a bug.',
  },
  status_update_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'An update of the status page and its figures failed. Polling and sending continue.',
    next: 'If the line repeats, report a bug.',
  },
  live_tail_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'The live tail of the status page failed. Polling and sending continue.',
  },
  stored_status_not_read: {
    level: 'debug',
    fields: ['error'],
    meaning:
      'Figures of the state could not be read for the status page, which shows the last ones.',
  },
  metrics_push_failed: {
    level: 'warn',
    fields: ['url', 'error'],
    meaning: 'Metrics could not be pushed. sluice tries again.',
    next: 'Check the endpoint at `url`.',
  },
  metrics_push_recovered: {
    level: 'info',
    fields: [],
    meaning: 'Metrics are pushed again.',
  },
  log_export_failed: {
    level: 'warn',
    fields: ['collector', 'error', 'lost'],
    meaning: 'Log lines do not reach the collector (`log.otlp`). They are on stderr only.',
    next: 'Check the collector.',
  },
  log_export_recovered: {
    level: 'info',
    fields: ['collector', 'lost'],
    meaning: 'Log lines reach the collector again; `lost` lines never did.',
  },
} as const satisfies EventDeclarations;
