// Upgrade of a state in Kafka from a version with `own_process`: a sink could have a sender process, which reported to
// the owner of the shard on the topic `<prefix>.sent`. Here the owner applies the reports that are not in the state
// yet. Invariants: a position and the dead letters before it are stored together, and each dead letter once; and a
// sender process that still runs stops before this process stores a page, since both would send it.

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { StateLogSettings } from '../cluster/index.ts';
import { ControlLog } from '../cluster/kafka.ts';
import {
  type Clock,
  type DeadLetter,
  type Json,
  type JsonObject,
  type Log,
  type Numbering,
  reachOf,
} from '../contracts/index.ts';
import { Store } from '../hold/index.ts';
import { normalisersOf, PageDecoder } from '../send/index.ts';

const positionShape = z.object({
  place: z.object({ spool: z.string(), epoch: z.number(), next: z.number() }),
  mark: z.json(),
});
const refusedShape = z.object({ offset: z.number(), uid: z.string(), reason: z.string() });
const sendersShape = z.object({ sinks: z.record(z.string(), z.unknown()) });

type Refused = z.output<typeof refusedShape>;

interface Upgrade {
  /** Of the shard. */
  readonly dir: string;
  readonly clock: Clock;
  readonly log: Log;
}

interface Reported {
  readonly sink: string;
  readonly topic: SentTopic;
}

/** The topic of the reports, which only these older versions create. */
export function sentTopic({ prefix }: Pick<StateLogSettings, 'prefix'>): string {
  return `${prefix}.sent`;
}

/**
 * Stores the reports in the state of a shard, which no spool has open. Throws `sink_unreachable` or
 * `sink_refused` where the topic cannot be read.
 */
export async function takeOverSent(
  kafka: StateLogSettings,
  { dir, clock, log }: Upgrade,
): Promise<void> {
  await using topic = new SentTopic(kafka, clock);
  await topic.readAll();
  if (topic.positions.size === 0 && !topic.hasSenders) return;
  using store = new Store({ dir, sync: 'none', keepMs: 0 });
  if (topic.hasSenders) {
    await topic.stopSenders(store.numbering);
    await topic.readAll();
  }
  for (const sink of topic.positions.keys()) takeOver(store, { sink, topic, clock, log });
}

/** Each report counts once: a later start may find it beside a newer mark of the same position. */
function takeOver(
  store: Store,
  { sink, topic, clock, log }: Pick<Upgrade, 'clock' | 'log'> & Reported,
): void {
  const report = topic.positions.get(sink);
  const note = `sent ${sink}`;
  if (report === undefined || isDeepStrictEqual(store.noted('cluster').get(note), report)) return;
  const { position: from } = store.progress(sink);
  const { position } = reachOf(report.place, store.numbering);
  const deadLetters = topic
    .refused(sink)
    .filter(({ offset }) => from <= offset && offset < position)
    .flatMap((refused) => deadLetterOf(store, sink, refused) ?? []);
  const { mark } = report;
  store.transaction(() => {
    if (position >= from) store.acknowledge(sink, { position, mark, deadLetters }, clock.now());
    store.note('cluster', note, JSON.stringify(report), clock.now());
  });
  if (position <= from) return;
  log.info(
    'sender_position_adopted',
    'took over the position of a sender process of an older version',
    {
      ...{ sink, from, position, dead_letters: deadLetters.length },
    },
  );
}

/** Its record is in its page; null: it is a dead letter already, or the page is gone. */
function deadLetterOf(store: Store, sink: string, refused: Refused): DeadLetter | null {
  const { offset, uid, reason } = refused;
  const isStored = store.deadLetters
    .list(sink)
    .some((deadLetter) => deadLetter.offset === offset && deadLetter.uid === uid);
  const [page] = isStored ? [] : store.read(offset, 1);
  const decoder = new PageDecoder(normalisersOf([]));
  const event = page && decoder.decode(page).events[offset - page.first];
  if (event?.uid !== uid) return null;
  return { uid, offset, reason, context: event.context, record: new Uint8Array(event.raw) };
}

/**
 * The partition of a shard, by its keys: `["held", "owner"]`, the sinks that sender processes may send to;
 * `["sent", SINK]`, the position of one; `["letter", SINK, OFFSET, UID]`, an event that the receiver rejected, until
 * the owner has stored it.
 */
class SentTopic extends ControlLog {
  readonly positions = new Map<string, z.output<typeof positionShape>>();
  hasSenders = false;
  readonly #refused = new Map<string, { readonly sink: string; readonly event: Refused }>();

  constructor(settings: StateLogSettings, clock: Clock) {
    super(settings, clock, {
      ...{ topic: sentTopic(settings), partition: settings.shard ?? 0 },
    });
  }

  /** In the order of their offsets. */
  refused(sink: string): readonly Refused[] {
    return [...this.#refused.values()]
      .flatMap((one) => (one.sink === sink ? [one.event] : []))
      .sort((a, b) => a.offset - b.offset);
  }

  /** A sender process sends only to a sink that the owner names, and restarts after each change. */
  async stopSenders(numbering: Numbering): Promise<void> {
    await this.write(['held', 'owner'], { numbering, sinks: {} } as unknown as Json);
  }

  protected put(key: readonly (string | number)[], said: JsonObject | null): void {
    const [kind, sink = ''] = key.map(String);
    if (kind === 'held') {
      const { sinks = {} } = sendersShape.safeParse(said).data ?? {};
      this.hasSenders = Object.keys(sinks).length > 0;
    } else if (kind === 'sent') {
      const position = positionShape.safeParse(said).data;
      if (position !== undefined) this.positions.set(sink, position);
    } else if (kind === 'letter') {
      const event = refusedShape.safeParse(said).data;
      if (event === undefined) this.#refused.delete(key.join(' '));
      else this.#refused.set(key.join(' '), { sink, event });
    }
  }
}
