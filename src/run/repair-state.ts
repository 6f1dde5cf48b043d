// Reports to the operator and the sinks that the state database was damaged and has been repaired (hold/repair.ts), or
// is older than the deliveries made from it (hold/older.ts). Streams that went back report it to their sinks as
// `source.checkpoint_reset`, so that no record is read again without a report.

import type { Config } from '../config/index.ts';
import type { ConditionRecord, Log, NewPage, Stream } from '../contracts/index.ts';
import { conditionRecord, Identifier, ownPage, pageContext } from '../fetch/index.ts';
import {
  findOlder,
  type Older,
  type Repaired,
  type RepairSettings,
  repairDatabase,
  type StreamReset,
} from '../hold/open.ts';
import type { Plan } from '../pipeline.ts';
import { timeText } from '../tools/index.ts';

/** The receivers of the report. */
export interface RepairDeps {
  readonly log: Log;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly found: (condition: ConditionRecord) => void;
}

/** Checks the database and repairs it. Throws `state_locked`, `_damaged` or `disk_full`. */
export function repairState(plan: Plan, state: Config['state'], deps: RepairDeps): void {
  const streams = new Map(
    plan.sources.flatMap((source) => source.streams.map((stream) => [stream.name, stream])),
  );
  const settings: RepairSettings = {
    dir: state.dir,
    // A cache is built again after a power cut, so nothing waits for the disk.
    sync: state.kafka === null ? state.sync : 'none',
    isCache: state.kafka !== null,
    sinks: plan.sinks.map(({ name }) => name),
    streams: [...streams.keys()],
    report: (reset) => {
      const stream = streams.get(reset.stream);
      return stream === undefined ? null : resetPage(stream, reset, deps);
    },
  };
  const repaired = repairDatabase(settings);
  if (repaired !== null) reportRepaired(repaired, state.kafka, deps.log);
  const older = repaired === null ? findOlder(settings) : null;
  if (older !== null) reportOlder(older, deps.log);
}

function resetPage(stream: Stream, reset: StreamReset, { now, found }: RepairDeps): NewPage {
  const { name, source, company } = stream;
  const condition = conditionRecord(
    stream,
    {
      condition: 'source.checkpoint_reset',
      message: resetText(stream, reset),
      details: { reason: reset.reason, delivered_until: timeText(reset.deliveredAt) },
    },
    now,
  );
  found(condition);
  const identity = { source, company: company ?? '', stream: name, id: null, checkContent: false };
  const uid = new Identifier(identity).ownUid([condition.condition, reset.reason, now]);
  return ownPage(pageContext(stream, 'condition', now), [condition], [uid]);
}

function resetText({ name, kind }: Stream, { deliveredAt, reason }: StreamReset): string {
  if (reason === 'state_older') {
    return `the state is older than its deliveries; ${name} resumes from its position at ${timeText(deliveredAt)}, and repeated events have the same uid`;
  }
  const what = `the state database was damaged and events of ${name} may have been lost from it;`;
  if (kind === 'collection') {
    return `${what} its configuration is reported again as a baseline, and a change that was not delivered yet is not reported`;
  }
  if (kind === 'push') {
    return `${what} upstream does not deliver them again; polled sources read the same records`;
  }
  const from =
    deliveredAt === null
      ? 'its start, since no later position is known to be delivered'
      : `where everything had been delivered at ${timeText(deliveredAt)}`;
  return `${what} it is read again from ${from}, and repeated events have the same uid`;
}

function reportRepaired(repaired: Repaired, kafka: Config['state']['kafka'], log: Log): void {
  const { damage, aside, saved, lost, resets, ...rest } = repaired;
  const kept =
    aside === null
      ? 'There was no file left to keep.'
      : `The damaged database is kept in ${aside}; delete it when you no longer need it.`;
  // Rebuilt from the topics just now: a fault in the database is a fault in the topics.
  const what =
    kafka === null ? 'the state database was damaged' : 'the state in Kafka is not whole';
  const cause =
    kafka === null
      ? 'Check the disk: it returned other bytes than were written.'
      : `Find the cause of a deleted or recreated topic ${kafka.prefix}.state: sluice does neither.`;
  log.error('state_damaged', `${what}; it was set aside and rebuilt`, {
    code: 'state_damaged',
    damage,
    ...(aside === null ? {} : { set_aside: aside }),
    events_saved: saved,
    events_lost: lost ?? 'unknown',
    dead_letters: rest.deadLettersSaved ? 'saved' : 'not all could be read',
    streams_set_back: resets.length,
    next: `${resets.length === 0 ? 'Nothing is missing.' : 'Missing events are read from upstream again.'} ${kept} ${cause}`,
  });
}

function reportOlder({ sign, resets }: Older, log: Log): void {
  log.error('state_older', 'the state is older than the deliveries made from it', {
    code: 'state_older',
    sign,
    streams: resets.length,
    next: 'Nothing is lost: reading resumes at the older position. If no copy was restored, check the disk: the newest part of the database, sluice.db-wal, is gone. Sinks file, s3 and Kafka with exactly_once skip events that they have; other sinks get them once more, with the same uid.',
  });
}
