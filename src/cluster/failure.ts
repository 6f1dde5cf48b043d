// Errors of requests to Kafka about a state there, as users see them.

import { ExportError } from '../contracts/index.ts';
import { KafkaFailure } from '../kafka/index.ts';
import { kafkaFailureOf } from '../kafka/log-client.ts';

/** `sink_unreachable` or `sink_refused`; an ExportError is returned unchanged. */
export function clusterError(error: unknown, doing: string): ExportError {
  if (error instanceof ExportError) return error;
  const failure = error instanceof KafkaFailure ? error : kafkaFailureOf(error, doing);
  const code = failure.kind === 'passing' ? 'sink_unreachable' : 'sink_refused';
  return new ExportError(code, failure.message, {
    next: 'Run sluice check --connect to check state.kafka: brokers, rights and topics.',
    cause: failure,
  });
}
