// Errors of requests to Kafka about a state there, and errors of a shard's log that end its owner's work, as users see
// them.

import { ExportError } from '../contracts/index.ts';
import { KafkaFailure } from '../kafka/index.ts';
import { kafkaFailureOf } from '../kafka/log-client.ts';
import type { StateLogSettings } from './log/settings.ts';
import { transactionMsMax } from './log/writer.ts';

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

type Which = Pick<StateLogSettings, 'prefix' | 'shard'>;

const nameOf = ({ prefix, shard = 0 }: Which) => `the shard ${shard} of ${prefix}`;

/** Another process has it. */
export function shardLost(which: Which): ExportError {
  return new ExportError('state_locked', `another process now owns ${nameOf(which)}`, {
    next: 'Nothing was lost: it resumes from the last commit of this one. Run one process, or give each process its own instance name.',
  });
}

/** At the end of a process. */
export function restNotTaken(which: Which): ExportError {
  const what = `Kafka does not accept the rest of ${nameOf(which)}`;
  return new ExportError('sink_unreachable', what, {
    next: 'Nothing was lost: records that were not committed are read again at the next start. Run sluice check --connect to check state.kafka.',
  });
}

/** `what` has happened to a topic. */
export function topicGone(what: string): ExportError {
  return new ExportError('state_damaged', what, {
    next: 'Find the cause: sluice does not delete it. The next start creates the missing topics and reads unknown records from upstream again; repeated events have the same uid.',
  });
}

/** The error of a response of Kafka; an ExportError is returned unchanged. */
export function logError(error: unknown, doing: string, which: Which): unknown {
  if (!(error instanceof KafkaFailure)) return error;
  const code = error.kind === 'passing' ? 'sink_unreachable' : 'sink_refused';
  return new ExportError(code, `${doing} ${nameOf(which)}: ${error.message}`, {
    next: `${nextAfter(error)} Nothing was lost.`,
    cause: error,
  });
}

function nextAfter({ kind, message }: KafkaFailure): string {
  if (message.includes('INVALID_TRANSACTION_TIMEOUT')) {
    return `Set transaction.max.timeout.ms of the brokers to ${transactionMsMax} at least.`;
  }
  if (kind !== 'clock') {
    return 'Run sluice check --connect to check state.kafka: brokers, rights and topics.';
  }
  return 'Set this machine’s clock right, which is further ahead than message.timestamp.after.max.ms of its topics allows, or their message.timestamp.type to LogAppendTime.';
}
