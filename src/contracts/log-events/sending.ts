// Log events of the third stage: routes, sinks, connectors, and the comparison with a destination's
// content.

import type { EventDeclarations } from './declaration.ts';

/** Events of the third stage, by name. */
export const sendingEvents = {
  sink_failed: {
    level: 'warn',
    fields: ['sink', 'error', 'next', 'wait_ms'],
    meaning: 'The receiver did not accept a batch. sluice sends the batch again after `wait_ms`.',
  },
  sink_refused: {
    level: 'error',
    fields: ['sink', 'error', 'next', 'wait_ms'],
    meaning:
      'The receiver refuses everything: rights, address or certificate. Events stay in the spool.',
  },
  sink_accepts_nothing: {
    level: 'warn',
    fields: ['sink', 'error', 'next', 'wait_ms'],
    meaning:
      'The receiver refuses single events and accepts none. Refused events wait for the next probe as suspects.',
  },
  sink_recovered: {
    level: 'info',
    fields: ['sink'],
    meaning: 'The receiver accepts events again.',
  },
  sink_close_failed: {
    level: 'warn',
    fields: ['error'],
    meaning:
      'A sink could not be closed cleanly during a config reload. Its position is unchanged.',
  },
  sink_ahead_of_state: {
    level: 'error',
    fields: ['sink', 'code', 'next'],
    meaning: 'The destination has events that the state does not know: the state is an older copy.',
  },
  sink_condition_not_stored: {
    level: 'warn',
    fields: ['sink', 'error'],
    meaning:
      'A condition that a sink reported could not be stored as an event. sluice tries again.',
    next: 'Check the disk and the state directory.',
  },
  event_refused: {
    level: 'warn',
    fields: ['sink', 'uid', 'stream', 'reason'],
    meaning: 'The receiver refused one event for good. The event is now a dead letter.',
    next: 'Read the reason: `sluice dead-letters list`. After a correction: `sluice dead-letters retry`.',
  },
  event_suspected: {
    level: 'warn',
    fields: ['sink', 'uid', 'stream', 'reason'],
    meaning:
      'The receiver refuses events and accepts none. The events stay in the spool as suspects until the receiver accepts one.',
    next: 'Check the receiver. To give the events up: `sluice dead-letters add`.',
  },
  destination_refused: {
    level: 'error',
    fields: ['sink', 'destination', 'reason', 'next'],
    meaning:
      'One destination of a sink (a topic or an index) refuses its events. sluice sets them aside in order. Other destinations continue.',
  },
  destination_recovered: {
    level: 'info',
    fields: ['sink', 'destination'],
    meaning: 'All events that were set aside for a destination are delivered.',
  },
  set_aside_event_refused: {
    level: 'warn',
    fields: ['sink', 'destination', 'reason'],
    meaning:
      'The destination accepts other events and refuses this one. The event is now a dead letter.',
    next: 'Read the reason: `sluice dead-letters list`.',
  },
  position_not_saved: {
    level: 'error',
    fields: ['sink', 'error', 'next'],
    meaning:
      'sluice stopped before the position of a sink was stored. Events sent since are sent again, with the same uid.',
  },
  position_save_failed: {
    level: 'warn',
    fields: ['sink', 'error', 'next'],
    meaning: 'The position of a sink could not be stored. sluice tries again.',
  },
  filter_failed: {
    level: 'warn',
    fields: ['route', 'source', 'why'],
    meaning: 'A `where` filter failed on an event. The event passes the filter.',
    next: 'Correct `where` of the route.',
  },
  receiver_warning: {
    level: 'warn',
    fields: ['sink', 'message'],
    meaning: 'An OTLP receiver accepted the records and added a warning.',
  },
  receiver_confirms: {
    level: 'info',
    fields: ['address'],
    meaning: 'The syslog receiver closes connections again, which confirms the messages.',
  },
  receiver_does_not_confirm: {
    level: 'warn',
    fields: ['address', 'next'],
    meaning:
      'The syslog receiver does not close a connection after sluice does. Nothing confirms the messages.',
  },
  event_times_replaced: {
    level: 'warn',
    fields: ['events'],
    meaning:
      'Events are older than 18 hours. Datadog replaces their time with the time of arrival.',
    next: 'Search such events by the time in the event.',
  },
  sasl_password_in_clear: {
    level: 'warn',
    fields: ['next'],
    meaning: 'The SASL password is sent to Kafka without encryption.',
  },
  kafka_client_line: {
    level: 'debug',
    fields: ['part', 'message', 'broker'],
    meaning: 'A log line of the Kafka client library.',
  },
  topic_read_back: {
    level: 'info',
    fields: [],
    meaning: 'sluice reads the newest records of the topic, to avoid repeated events.',
  },
  bucket_not_readable: {
    level: 'warn',
    fields: ['code', 'next'],
    meaning:
      'The account may write objects and may not list them. After a restore of an older state, events may be delivered twice.',
  },
  file_replaced: {
    level: 'warn',
    fields: ['path'],
    meaning: 'Another process moved or changed the output file. sluice started a new segment.',
    next: 'Use `rotate` of the sink in place of a rotation by another program.',
  },
  file_tail_cut: {
    level: 'info',
    fields: ['path', 'bytes'],
    meaning:
      'A stopped process left a half-written end of the file. sluice cut it and writes these events again.',
  },
  file_lines_unknown: {
    level: 'warn',
    fields: ['code', 'path', 'next'],
    meaning:
      'The file has lines that the note beside it does not know. Events may be written twice, with the same uid.',
  },
  file_not_compressed: {
    level: 'warn',
    fields: ['path', 'error'],
    meaning: 'A finished file could not be compressed. sluice tries again at the next start.',
    next: 'Check the space on the disk.',
  },
  file_retried: {
    level: 'warn',
    fields: ['sink', 'error'],
    meaning: 'The output file could not be opened or closed. sluice tries again.',
    next: 'Check `path` of the sink: directory, rights and space.',
  },
} as const satisfies EventDeclarations;
