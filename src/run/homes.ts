// In which shard each source has its state, where the state in Kafka has several: stored in the control topic before a shard is
// worked on. A shard follows from the config, so a changed config may put a source into another one: an upstream is renamed,
// gets another client, or a source succeeds one of another upstream. Invariant: a source that has a state is read in
// the shard that has it, or not at all; in another one it would be read again from its start, and delivered twice.

import type { MemberSettings } from '../cluster/index.ts';
import type { Control } from '../cluster/kafka.ts';
import { type Config, shardKeyOf, shardMates, shardOfStream } from '../config/index.ts';
import { type Clock, ExportError } from '../contracts/index.ts';

/** A config as far as it says where sources are read. */
type Placed = Pick<Config, 'state' | 'upstreams' | 'sources' | 'sinks' | 'watch'>;

interface Means {
  /** Read to its end. */
  readonly control: Pick<Control, 'homes'>;
  readonly clock: Clock;
}

/** A source whose state is in another shard than the one that the config reads it in. */
interface Misplaced {
  readonly source: string;
  readonly has: number;
}

/** Where sources are. */
interface Homes {
  /** By source, the shard that is stored or was found. */
  readonly found: ReadonlyMap<string, number>;
  /** By source, in the config or not, those that are not stored so yet. */
  readonly unsettled: ReadonlyMap<string, number>;
  readonly misplaced: readonly Misplaced[];
}

/**
 * Stores in which shard each source is read. Throws `config_invalid` where one has its state in another shard, and where Kafka
 * cannot be read or written.
 */
export async function agreeOnHomes(
  config: Placed,
  { control, clock }: Means & { readonly control: Pick<Control, 'homes' | 'settle' | 'caughtUp'> },
): Promise<void> {
  if (!isShared(config)) return;
  await control.caughtUp();
  const { unsettled, misplaced, found } = await homesOf(config, { control, clock });
  if (misplaced.length > 0) throw refused(config, misplaced, found);
  // At once: after a kill between two of them, the others would count as new.
  await control.settle(unsettled);
}

/** Why a run would be refused; null: it would not. Changes nothing. Throws `sink_unreachable` or `sink_refused`. */
export async function homesFault(config: Placed, clock: Clock): Promise<ExportError | null> {
  const { kafka } = config.state;
  if (kafka === null || !isShared(config)) return null;
  const { Control: ControlTopic } = await import('../cluster/kafka.ts');
  await using control = new ControlTopic(kafka, clock);
  await control.readAll();
  const { misplaced, found } = await homesOf(config, { control, clock });
  return misplaced.length === 0 ? null : refused(config, misplaced, found);
}

/**
 * For the process of one shard, which reads the config by itself: throws `config_invalid` where a source of its part is stored
 * as another shard's.
 */
export function refuseMoved(part: Placed, control: Pick<Control, 'homes'>): void {
  const shard = part.state.kafka?.shard;
  if (shard === undefined || !isShared(part)) return;
  const misplaced = Object.keys(part.sources).flatMap((source) => {
    const has = control.homes.get(source) ?? shard;
    return has === shard ? [] : [{ source, has }];
  });
  if (misplaced.length > 0) throw refused(part, misplaced, control.homes);
}

function isShared({ state }: Placed): boolean {
  return (state.kafka?.shards ?? 1) > 1;
}

async function homesOf(config: Placed, { control, clock }: Means): Promise<Homes> {
  const { kafka } = config.state;
  const unsettled = new Map<string, number>();
  const misplaced: Misplaced[] = [];
  if (kafka === null) return { unsettled, misplaced, found: new Map() };
  const look = new Look(kafka, clock);
  const { homes } = control;
  // A state of an older version, or one that was imported: nothing says where its sources are.
  const found = homes.size === 0 ? await look.homes(config) : homes;
  for (const [source, shard] of found) {
    if (homes.get(source) !== shard) unsettled.set(source, shard);
  }
  for (const source of Object.keys(config.sources)) {
    const own = shardOfStream(config, source);
    const has = found.get(source);
    if (own === null || has === own) continue;
    // It was stored before anything was read, or has been reset since.
    const isThere = has !== undefined && (await look.has(source, has));
    if (isThere && !(await look.has(source, own))) misplaced.push({ source, has });
    else unsettled.set(source, own);
  }
  return { unsettled, misplaced, found };
}

/** What is committed, read once a shard. */
class Look {
  readonly #kafka: MemberSettings;
  readonly #clock: Clock;
  readonly #sources = new Map<number, Promise<ReadonlySet<string>>>();

  constructor(kafka: MemberSettings, clock: Clock) {
    this.#kafka = kafka;
    this.#clock = clock;
  }

  async has(source: string, shard: number): Promise<boolean> {
    return (await this.#in(shard)).has(source);
  }

  /** Each source that has a state, with its shard; of several that of the config. */
  async homes(config: Placed): Promise<ReadonlyMap<string, number>> {
    const { usedShards } = await import('../cluster/kafka.ts');
    const found = new Map<string, number>();
    for (const shard of await usedShards(this.#kafka, this.#clock)) {
      for (const source of await this.#in(shard)) {
        const isOwn = shardOfStream(config, source) === shard;
        if (isOwn || !found.has(source)) found.set(source, shard);
      }
    }
    return found;
  }

  async #in(shard: number): Promise<ReadonlySet<string>> {
    const looked = this.#sources.getOrInsertComputed(shard, () => this.#read(shard));
    return await looked;
  }

  async #read(shard: number): Promise<ReadonlySet<string>> {
    const { streamsHeld } = await import('../cluster/kafka.ts');
    const streams = await streamsHeld({ ...this.#kafka, shard }, this.#clock);
    return new Set(
      [...streams].map(shardKeyOf).filter((name) => name !== '' && !name.includes('#')),
    );
  }
}

function refused(
  config: Placed,
  misplaced: readonly Misplaced[],
  found: ReadonlyMap<string, number>,
): ExportError {
  const said = misplaced.map(({ source, has }) => {
    const upstream = config.sources[source]?.settings.upstream;
    const own = shardOfStream(config, source);
    return `sources.${source} (upstream ${upstream}) has its state in shard ${has}, and this config reads it in shard ${own}`;
  });
  const what = `${said.join('; ')}; it would be read again from its start`;
  const next = [...new Set(misplaced.map((one) => nextFor(config, one, found)))].join(' ');
  return new ExportError('config_invalid', what, { next: `${next} Nothing was changed.` });
}

const move =
  'Or end all processes, run sluice cluster export, give state.kafka.prefix another name, and run sluice cluster import: each source then has its state where this config reads it.';

function nextFor(
  { upstreams, sources }: Placed,
  { source, has }: Misplaced,
  found: ReadonlyMap<string, number>,
): string {
  const upstream = sources[source]?.settings.upstream ?? '';
  const mates = shardMates({ upstreams, sources }, upstream);
  const inGroup = Object.entries(sources).filter(([, { settings }]) =>
    mates.includes(settings.upstream),
  );
  if (inGroup.every(([name]) => [undefined, has].includes(found.get(name)))) {
    return `Set upstreams.${upstream}.shard to ${has}.`;
  }
  const upstreamOf = (name: string | undefined) => sources[name ?? '']?.settings.upstream;
  const pairs = inGroup.flatMap(([name, { succeeds }]) =>
    succeeds === undefined ? [] : [{ name, old: succeeds.source }],
  );
  const pair =
    pairs.find(({ name }) => upstreamOf(name) === upstream) ??
    pairs.find(({ old }) => upstreamOf(old) === upstream);
  if (pair === undefined) {
    return `${mates.join(' and ')} have one API client and are read in one shard. Give ${upstream} an API client of its own, and set upstreams.${upstream}.shard to ${has}. ${move}`;
  }
  return `${pair.name} succeeds ${pair.old}, and both sources of a pair are read in one shard. Give ${pair.name} an upstream of its own, with the same base_url and an API client of its own: then nothing moves. ${move}`;
}
