// Log events of the state: spool, repair, state on Kafka, ownership of shards, worker processes.

import type { EventDeclarations } from './declaration.ts';

/** Events of the state, by name. */
export const stateEvents = {
  state_damaged: {
    level: 'error',
    fields: [
      ...(['code', 'damage', 'set_aside', 'events_saved', 'events_lost'] as const),
      ...(['dead_letters', 'streams_set_back', 'next'] as const),
    ],
    meaning:
      'The state database was damaged. sluice kept the damaged file, built a new database, and reads missing events from upstream again.',
  },
  state_older: {
    level: 'error',
    fields: ['code', 'sign', 'streams', 'next'],
    meaning:
      'The state is older than the deliveries made from it, for example a restored copy. Streams resume at the older checkpoint.',
  },
  state_dir_of_working_directory: {
    level: 'warn',
    fields: [],
    meaning: 'The state is in the working directory, the default of an older version.',
    next: 'Set `state.dir`, or stop sluice and move the directory.',
  },
  sink_returned_with_gap: {
    level: 'warn',
    fields: ['sink', 'events', 'first', 'last', 'next'],
    meaning: 'A removed sink is in the config again, and events in between were already released.',
  },
  removed_sink_released: {
    level: 'warn',
    fields: ['sink', 'events', 'why', 'next'],
    meaning: 'sluice released events that it kept for a removed sink (`state.removed_sinks`).',
  },
  release_not_reported: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The release of events could not be reported. sluice reports the release later.',
  },
  state_waited_for: {
    level: 'info',
    fields: [],
    meaning:
      'A command such as `sluice succession cutover` holds the state directory for one change. sluice waits for its end, 60 s at most.',
  },
  state_rebuilt: {
    level: 'info',
    fields: ['streams', 'pages'],
    meaning: 'The local copy of the state was rebuilt from Kafka.',
  },
  kafka_pages_lost: {
    level: 'error',
    fields: ['from', 'until', 'next'],
    meaning: 'Kafka deleted pages that a sink has not delivered.',
  },
  kafka_commit_failed: {
    level: 'warn',
    fields: ['shard', 'error'],
    meaning: 'Kafka did not commit a transaction. sluice tries again. Polling waits meanwhile.',
    next: 'If the line repeats, check the brokers: `sluice check --connect`.',
  },
  kafka_pages_not_deleted: {
    level: 'warn',
    fields: ['shard', 'error'],
    meaning: 'Pages that every sink has delivered could not be deleted from the topic.',
    next: 'Grant DELETE on the topic: `sluice cluster acls`.',
  },
  state_owned: {
    level: 'info',
    fields: ['shard', 'group', 'generation'],
    meaning: 'This process owns the state in Kafka, or the shard.',
  },
  standing_by: {
    level: 'info',
    fields: ['shard', 'group', 'generation'],
    meaning: 'This process waits until it gets the state, or the shard.',
  },
  group_join_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'The membership of the consumer group failed. sluice joins again after the session.',
  },
  group_not_answering: {
    level: 'debug',
    fields: ['error'],
    meaning: 'One request to the group coordinator failed. sluice retries.',
  },
  group_unreachable: {
    level: 'warn',
    fields: ['silent_ms', 'error'],
    meaning:
      'The group coordinator has not responded for a large part of the session. Polling and sending pause, because another process may take over. `error` is the last failure, if one is known; another one is logged as well, at most once per session.',
    next: 'Check the network to the brokers, and the token endpoint if `error` names it.',
  },
  group_recovered: {
    level: 'info',
    fields: [],
    meaning: 'The group coordinator responds again. Polling and sending resume.',
  },
  deployment_changed: {
    level: 'warn',
    fields: ['deployment', 'upstreams', 'next'],
    meaning: 'The state in Kafka was made with other upstreams than the config has now.',
  },
  deployment_not_stored: {
    level: 'warn',
    fields: ['error', 'next'],
    meaning: 'The deployment could not be stored after a reload.',
  },
  sender_position_adopted: {
    level: 'info',
    fields: ['sink', 'from', 'position', 'dead_letters'],
    meaning: 'The position of a sender process of an older version was adopted.',
  },
  shard_worker_started: {
    level: 'info',
    fields: ['shard', 'pid'],
    meaning: 'A shard was started in a worker process.',
  },
  shard_worker_not_started: {
    level: 'error',
    fields: ['error'],
    meaning: 'A worker process could not be started. sluice tries again.',
    next: 'Check memory and the limit of processes.',
  },
  shard_worker_silent: {
    level: 'error',
    fields: ['pid', 'silent_ms'],
    meaning: 'A worker process stopped responding. sluice ends it and starts another.',
    next: 'If the line repeats, check memory and CPU.',
  },
  shard_worker_ended: {
    level: 'warn',
    fields: ['shard', 'code', 'error'],
    meaning:
      'A shard ended with an error, or its worker process did. sluice starts the shard again.',
    next: 'Correct what `error` names. Without `error`, the worker process ended: check memory.',
  },
  shard_failed: {
    level: 'error',
    fields: ['shard'],
    meaning: 'This process cannot work on a shard, and ends.',
    next: 'See the error of the last line, `sluice_failed`.',
  },
  shard_released: {
    level: 'info',
    fields: ['shard'],
    meaning: 'This process released a shard to a process that has fewer shards.',
  },
  cluster_status_failed: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The status of the cluster could not be read from Kafka. sluice retries.',
  },
  config_compare_failed: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The configs of the other processes could not be compared. sluice tries again.',
  },
  member_not_noted: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The note for local commands about this process could not be written.',
  },
  remote_command: {
    level: 'debug',
    fields: ['what', 'name'],
    meaning: 'A command from another machine arrived through the control topic.',
  },
  remote_commands_failed: {
    level: 'warn',
    fields: ['error'],
    meaning: 'Commands from other machines cannot be answered at the moment. sluice tries again.',
    next: 'Check the rights on the control topic: `sluice cluster acls`.',
  },
  remote_commands_unreadable: {
    level: 'debug',
    fields: ['error'],
    meaning: 'The control topic could not be read. sluice retries.',
  },
} as const satisfies EventDeclarations;
