// Sends events to a Kafka topic. Default: an idempotent producer, one batch acknowledged by all
// in-sync replicas. With `exactly_once`: one batch is one transaction, which also commits the
// sink's position in the spool under its own consumer group; that position is read back when the
// sink opens and after each failure, so a reader of committed records sees each event once,
// whatever crashes. Invariants: no later record passes one that Kafka rejects before the engine has
// it as a dead letter; a producer is never used again after a failure.

import { defineSink } from '../../src/contracts/config.ts';
import {
  asExportError,
  type Clock,
  type Delivery,
  ExportError,
  type Refusal,
  type Sink,
  type SinkOpening,
  type Tools,
} from '../../src/contracts/index.ts';
import {
  createTopics,
  KafkaFailure,
  type KafkaRecord,
  type KafkaTransactions,
  loadDriver,
  loadReader,
} from '../../src/kafka/index.ts';
import { isPerPage, pageNames, patternFlaw } from '../shared/destination-names.ts';
import { keptDigits } from '../shared/known-events.ts';
import { ProducerConnection } from './kafka/connection.ts';
import { deliveryOf, type FailureContext } from './kafka/outcome.ts';
import { aloneBytes, RecordMaker, requestsOf } from './kafka/records.ts';
import { fields, type KafkaSettings, optionsOf, type Purpose } from './kafka/settings.ts';
import { TopicProgress } from './kafka/topic-progress.ts';

/** `type: kafka`. */
export const kafkaSink = defineSink({
  type: 'kafka',
  summary: 'Sends events to a Kafka topic; with exactly_once each event is there once.',
  fields,
  carries: ['lines', 'json', 'gelf', 'otlp'],
  usualFormat: 'json',
  sample: {
    to: { what: 'brokers and topic', usual: 'kafka-1.example:9092/security-events' },
    lines: (to) => {
      const slash = to.lastIndexOf('/');
      const brokers = to.slice(0, Math.max(0, slash)).split(',');
      return [
        `brokers: [${brokers.map((broker) => JSON.stringify(broker.trim())).join(', ')}]`,
        `topic: ${JSON.stringify(to.slice(slash + 1).trim())}`,
        'format: json',
        'exactly_once: true # readers set isolation.level=read_committed',
        '# tls: {} # the system’s authorities',
        '# sasl: { mechanism: scram-sha-512, username: "${env:KAFKA_USER}", password: "${env:KAFKA_PASSWORD}" }',
      ];
    },
  },
  inFlightMax: 1,
  // Requests are cut by max_message; a transaction needs four more requests, whatever its size.
  batch: { events: 4000, bytes: 3584 * 1024, waitMs: 50 },
  assurance: ({ exactly_once }) => (exactly_once ? 'once' : 'answered'),
  // A second producer with the transactional id would fence the running one.
  testSettings: (settings) => ({ ...settings, exactly_once: false }),

  flaw: ({ topic, exactly_once, transactional_id }) =>
    patternFlaw('topic', topic) ??
    (exactly_once && isPerPage(topic)
      ? 'exactly_once needs one topic; leave {company} and {source} out of topic, or set exactly_once: false'
      : null) ??
    (transactional_id !== undefined && !exactly_once
      ? 'transactional_id is set, but exactly_once is not; set exactly_once: true, or leave transactional_id out'
      : null),

  // Its default is derived from the sink's name: in another cluster or after a rename it is a
  // different one.
  own: ({ transactional_id: name }) =>
    name === undefined ? null : { key: 'transactional_id', name, shardSeparator: '-' },

  async open(settings, opening) {
    warnInClear(settings, opening.tools);
    return settings.exactly_once
      ? await onceSink(settings, opening)
      : await answeredSink(settings, opening);
  },

  async probe(settings, tools, signal) {
    const { topic } = settings;
    const doing = isPerPage(topic) ? 'connecting' : `reading the topic ${topic}`;
    const connection = await connect(settings, tools, { doing });
    try {
      // The topics of companies are known when their events come.
      const one = isPerPage(topic) ? null : topic;
      await connection.use((producer) => producer.checkTopic(one), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw outcomeOf(error, { doing, topic: settings.topic, keyless: false }).cause;
    } finally {
      await connection.close();
    }
  },

  async setup(settings, _format, { tools, streams = [] }) {
    const doing = 'creating topics';
    const topicOf = pageNames(settings.topic);
    const topics = isPerPage(settings.topic)
      ? [...new Set(streams.map((context) => topicOf({ context })))]
      : [settings.topic];
    try {
      const made = await createTopics(optionsOf(settings, tools, { doing }), topics);
      return made.length === 0 ? `topics exist: ${topics.length}` : `topics ${made.join(', ')}`;
    } catch (error) {
      throw outcomeOf(error, { doing, topic: settings.topic, keyless: false }).cause;
    }
  },
});

function warnInClear({ sasl, tls }: KafkaSettings, { log }: Tools): void {
  if (sasl === undefined || tls !== undefined || sasl.mechanism.startsWith('scram')) return;
  const what = sasl.mechanism === 'plain' ? 'password' : 'token';
  log.warn('sasl_password_in_clear', `the SASL ${what} is sent to Kafka without encryption`, {
    next: 'Set tls, or use a scram mechanism.',
  });
}

async function answeredSink(settings: KafkaSettings, opening: SinkOpening): Promise<Sink> {
  const context = contextOf(settings, opening);
  const connection = await connect(settings, opening.tools, context);
  const maker = new RecordMaker(settings.key);
  const bytesMax = settings.max_message;
  if (isPerPage(settings.topic)) {
    return topicsSink({ settings, connection, context, maker });
  }

  return {
    isDoneOnceDelivered: true,
    async send(batch, signal): Promise<Delivery> {
      const { records, refused } = sift(maker.recordsOf(batch), bytesMax);
      try {
        if (records.length > 0) {
          await connection.use(async (producer) => {
            for (const request of requestsOf(records, bytesMax)) await producer.produce(request);
          }, signal);
        }
      } catch (error) {
        signal.throwIfAborted();
        return outcomeOf(error, context);
      }
      return refused.length === 0
        ? { outcome: 'delivered' }
        : { outcome: 'partly', refused, again: [] };
    },
    close: () => connection.close(),
  };
}

interface TopicsDeps {
  readonly settings: KafkaSettings;
  readonly connection: ProducerConnection;
  readonly context: FailureContext;
  readonly maker: RecordMaker;
}

/** Writes each event to the topic of its company and source; a topic at fault holds only its own. */
function topicsSink({ settings, connection, context, maker }: TopicsDeps): Sink {
  const bytesMax = settings.max_message;
  const topicOf = pageNames(settings.topic);
  return {
    destinationOf: topicOf,
    isDoneOnceDelivered: true,
    async send(batch, signal): Promise<Delivery> {
      const { records, refused } = sift(maker.recordsOf(batch), bytesMax);
      const topics = new Map(batch.events.map((event) => [event.uid, topicOf(event)]));
      const again: string[] = [];
      let failure: ReturnType<typeof outcomeOf> | null = null;
      for (const [topic = '', own] of Map.groupBy(records, ({ uid }) => topics.get(uid))) {
        try {
          await connection.use(async (producer) => {
            for (const request of requestsOf(own, bytesMax)) await producer.produce(request, topic);
          }, signal);
        } catch (error) {
          signal.throwIfAborted();
          const outcome = outcomeOf(error, { ...context, topic });
          const isOfTopic = error instanceof KafkaFailure && error.answered && concernsTopic(error);
          if (!isOfTopic) {
            failure ??= outcome;
            again.push(...own.map(({ uid }) => uid));
            continue;
          }
          const reason = `topic ${topic}: ${outcome.cause.message}`;
          refused.push(...own.map(({ uid }) => ({ uid, reason, by: 'destination' as const })));
        }
      }
      if (failure !== null && again.length === records.length) return failure;
      if (refused.length + again.length === 0) return { outcome: 'delivered' };
      return { outcome: 'partly', refused, again };
    },
    close: () => connection.close(),
  };
}

/** True for a failure of one topic; others concern the brokers or the account. */
function concernsTopic({ kind, message }: KafkaFailure): boolean {
  return kind === 'topic_missing' || /TOPIC_AUTHORIZATION_FAILED|INVALID_TOPIC/.test(message);
}

async function onceSink(settings: KafkaSettings, opening: SinkOpening): Promise<Sink> {
  const { name, numbering, mark, tools } = opening;
  const own = `sluice-${numbering.spool.slice(0, 12)}-${name}`;
  // One attempt ends well before the broker would abort its transaction.
  const transactions: KafkaTransactions = {
    id: settings.transactional_id ?? own,
    group: own,
    timeoutMs: settings.timeout * 2,
    confirm: tools.confirm,
  };
  const context = { ...contextOf(settings, opening), transactionalId: transactions.id };
  const purpose = { doing: context.doing, transactions };
  const connection = await connect(settings, tools, purpose);
  const reader = await loadReader(optionsOf(settings, tools, purpose), keptDigits);
  const progress = new TopicProgress({ numbering, mark, reader, log: tools.log });
  const maker = new RecordMaker(settings.key);

  return {
    isDoneOnceDelivered: true,
    async send(batch, signal): Promise<Delivery> {
      const missing = progress.missing(batch);
      const { records, refused } = sift(maker.recordsOf(missing), settings.max_message);
      const [first] = refused;
      // The position must not pass a rejected event before it is a dead letter: the batch is cut.
      if (first !== undefined) return refusedBatch(first, context);
      try {
        const requests = requestsOf(records, settings.max_message);
        const place = progress.positionAfter(batch);
        const written =
          records.length === 0
            ? new Map<number, bigint>()
            : await connection.use((producer) => producer.transact(requests, place), signal);
        return { outcome: 'delivered', mark: progress.delivered(batch, written) };
      } catch (error) {
        signal.throwIfAborted();
        return outcomeOf(error, context);
      }
    },

    // No position is committed, and readers of committed records see no record.
    async tryOut(batch, signal): Promise<Delivery> {
      const { records, refused } = sift(maker.recordsOf(batch), settings.max_message);
      const [first] = refused;
      if (first !== undefined) return refusedBatch(first, context);
      try {
        const requests = requestsOf(records, settings.max_message);
        await connection.use((producer) => producer.tryOut(requests), signal);
        return { outcome: 'delivered' };
      } catch (error) {
        signal.throwIfAborted();
        return outcomeOf(error, context);
      }
    },

    async committed(signal) {
      try {
        const found = await connection.use((producer) => producer.committed(), signal);
        return await within(tools.clock, readBackMsMax, signal, (bound) =>
          progress.reach(found, bound),
        );
      } catch (error) {
        signal.throwIfAborted();
        throw outcomeOf(error, { ...context, doing: `reading the position of ${name} from Kafka` })
          .cause;
      }
    },

    close: () => connection.close(),
  };
}

/**
 * Reading back takes seconds; an open transaction in the topic may delay it by a quarter of an
 * hour.
 */
const readBackMsMax = 120_000;

async function within<T>(
  clock: Clock,
  limitMs: number,
  signal: AbortSignal,
  work: (bound: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ended = new AbortController();
  clock.sleep(limitMs, AbortSignal.any([signal, ended.signal])).then(
    () =>
      over.abort(
        new KafkaFailure('passing', `not read back within ${limitMs} ms`, { answered: false }),
      ),
    () => undefined,
  );
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    ended.abort();
  }
}

async function connect(
  settings: KafkaSettings,
  tools: Tools,
  purpose: Purpose,
): Promise<ProducerConnection> {
  const make = await loadDriver(settings.driver);
  const options = optionsOf(settings, tools, purpose);
  const { sasl } = options;
  return new ProducerConnection({
    make: () => make(options),
    onDenied: () => (sasl?.mechanism === 'oauthbearer' ? sasl.drop() : undefined),
    clock: tools.clock,
    mayFence: tools.confirm !== undefined,
    timeoutMs: settings.timeout,
  });
}

function contextOf(settings: KafkaSettings, opening: SinkOpening): FailureContext {
  return {
    doing: `sending to ${opening.name}`,
    topic: settings.topic,
    keyless: settings.key === 'none',
  };
}

function outcomeOf(error: unknown, context: FailureContext) {
  if (error instanceof KafkaFailure) return deliveryOf(error, context);
  const cause = asExportError(error, context.doing);
  return cause.code === 'broken_invariant' || cause.code === 'sink_refused'
    ? ({ outcome: 'refused', scope: 'sink', cause } as const)
    : ({ outcome: 'retry', cause } as const);
}

interface Sifted {
  readonly records: readonly KafkaRecord[];
  readonly refused: Refusal[];
}

function sift(records: readonly KafkaRecord[], bytesMax: number): Sifted {
  const refused: Refusal[] = [];
  const taken = records.filter((record) => {
    const bytes = aloneBytes(record);
    if (bytes <= bytesMax) return true;
    const reason = `too large for Kafka: ${bytes} bytes with its headers, max_message is ${bytesMax} bytes`;
    refused.push({ uid: record.uid, reason, by: 'sink' });
    return false;
  });
  return { records: taken, refused };
}

function refusedBatch(refusal: Refusal, context: FailureContext): Delivery {
  const cause = new ExportError(
    'record_refused',
    `${context.doing}: an event is ${refusal.reason}`,
    {
      next: `Raise max_message, and message.max.bytes of ${context.topic}, if Kafka should accept such events; then retry the dead letters.`,
      details: { uid: refusal.uid, topic: context.topic },
    },
  );
  return { outcome: 'refused', scope: 'batch', cause, by: 'sink' };
}
