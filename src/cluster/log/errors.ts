// What those are told who work with the log of a shard, where they cannot go on.

import { ExportError } from '../../contracts/errors.ts';
import { KafkaFailure } from '../../kafka/index.ts';
import type { LogSettings } from './settings.ts';
import { transactionMsMax } from './writer.ts';

type Which = Pick<LogSettings, 'prefix' | 'shard'>;

const nameOf = ({ prefix, shard = 0 }: Which) => `the shard ${shard} of ${prefix}`;

/** Another process has it. */
export function shardLost(which: Which): ExportError {
  return new ExportError('state_locked', `another process has taken ${nameOf(which)} over`, {
    next: 'Nothing was lost: it goes on from what this one has committed. Run one process, or give each an instance name of its own.',
  });
}

/** At the end of a process. */
export function restNotTaken(which: Which): ExportError {
  const what = `Kafka does not take what is left of ${nameOf(which)}`;
  return new ExportError('sink_unreachable', what, {
    next: 'Nothing was lost: what was not committed is read again at the next start. Ask sluice check --connect what is wrong with state.kafka.',
  });
}

/** `what` has happened to a topic. */
export function topicGone(what: string): ExportError {
  return new ExportError('state_damaged', what, {
    next: 'Find out who deleted it: sluice does not. The next start makes what is missing, and reads from upstream again what it knows nothing of; what comes twice has the same uid.',
  });
}

/** What Kafka has answered; what is told already, as it is. */
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
    return 'Ask sluice check --connect what is wrong with state.kafka: brokers, rights or topics.';
  }
  return 'Set this machine’s clock right, which is further ahead than message.timestamp.after.max.ms of its topics allows, or their message.timestamp.type to LogAppendTime.';
}
