// `sluice succession`: lists each source that has a successor or is on an API that ends, with the progress of its move.
// Nothing is changed.

import { type ClassChange, type Config, classChange, classChangeText } from '../../config/index.ts';
import { type PairAlone, type PairReport, pairTypeNames } from '../../contracts/index.ts';
import { commandOf, tableLines } from '../../terminal/index.ts';
import { cleanText, timeText } from '../../tools/index.ts';
import { configOption, defineCommand } from '../shared/command.ts';
import { knownMoves } from '../shared/known-moves.ts';
import { partsAtWork } from '../shared/parts.ts';

/** A source with its successor; times are RFC 3339 or null. */
interface ListedSource {
  readonly source: string;
  readonly upstream: string;
  readonly successor: string | null;
  /** When its API ends; null: never. */
  readonly endsAt: string | null;
  /** Null: the state has no pair yet. */
  readonly pair: PairReport | null;
  /** Null: events keep their OCSF classes. */
  readonly classes: ClassChange | null;
}

/** The changes that a receiver sees with every move. */
const changes = [
  'the source’s name, and with it `{source}` in topics, indexes and paths',
  'the stream’s name, and with it the key of Kafka messages',
  'uids of new records',
  'the shape of records that are sent as upstream sent them',
] as const;

/** 0 in any case: it only looks. */
export const successionList = defineCommand({
  name: 'list',
  about: 'show each source that has a successor, and how far its move has come',
  options: { config: configOption, json: { about: 'as JSON' } },
  async run({ config: file, json }, { out, ...deps }) {
    const parts = partsAtWork(file, { out, ...deps }).map(({ config }) => config);
    const listed: ListedSource[] = [];
    for (const config of parts) listed.push(...(await listedIn(config)));
    const [{ file: path } = { file }] = parts;
    if (json) out(JSON.stringify({ sources: listed.map(jsonOf), changes }, null, 2));
    else for (const line of linesOf(listed, commandOf(path))) out(line);
    return 0;
  },
});

async function listedIn(config: Config): Promise<readonly ListedSource[]> {
  const { pairs, upstreams } = await knownMoves(config);
  const ends = new Map(upstreams.map(({ name, ends_at: endsAt }) => [name, endsAt]));
  return Object.entries(config.sources).flatMap(([name, { settings }]) => {
    const { upstream } = settings;
    const endsAt = ends.get(upstream) ?? null;
    const successor =
      Object.keys(config.sources).find((one) => config.sources[one]?.succeeds?.source === name) ??
      null;
    if (successor === null && endsAt === null) return [];
    const pair = pairs.find((report) => report.successor === successor) ?? null;
    const classes = successor === null ? null : classChange(config.sources, successor);
    return [{ source: name, upstream, successor, endsAt, pair, classes }];
  });
}

function jsonOf(listed: ListedSource): object {
  const { source, upstream, successor, endsAt, pair, classes } = listed;
  const who = { source, upstream, ends_at: endsAt, successor };
  if (pair === null) {
    const none = { matched: null, only_old: null, only_new: null, fields: null };
    return { ...who, phase: null, ...none, classes };
  }
  return {
    ...{ ...who, phase: pair.phase, classes },
    ...{ begun_at: timeText(pair.begunAt), cut_over_at: timeText(pair.cutOverAt) },
    ...{ matched: pair.matched, known_before: pair.known },
    ...{ only_old: pair.onlyOld, only_new: pair.onlyNew, delivered_early: pair.early },
    ...{ waiting: pair.waiting, waiting_bytes: pair.waitingBytes },
    ...{ differing: pair.differing, fields: pair.fields.map(fieldOf) },
    ...{ only_old_fields: pair.onlyOldFields, only_new_fields: pair.onlyNewFields },
    ...{ times_apart: pair.apart, not_ready: pair.notReady },
    brake: pair.brake && { ...pair.brake, since: timeText(pair.brake.since) },
  };
}

function fieldOf({ path, count, types }: PairReport['fields'][number]): object {
  return { path, count, types: types.map(([old, late]) => [typeOf(old), typeOf(late)]) };
}

function typeOf(deadLetter: string): string {
  return pairTypeNames[deadLetter] ?? 'another';
}

type CommandText = ReturnType<typeof commandOf>;

function linesOf(listed: readonly ListedSource[], command: CommandText): readonly string[] {
  if (listed.length === 0) return ['no upstream ends, and no source has a successor'];
  const heads = ['source', 'ends', 'successor', 'phase', 'matched', 'only old', 'only new'];
  const rows = listed.map(({ source, successor, endsAt, pair }) => [
    ...[source, endsAt?.slice(0, 10) ?? 'never', successor ?? 'none', phaseText(successor, pair)],
    ...[countText(pair?.matched), countText(pair?.onlyOld.count), countText(pair?.onlyNew.count)],
    pair === null ? '-' : pair.fields.map(({ path }) => cleanText(path, 60)).join(', ') || '-',
  ]);
  const alone = listed.filter(({ successor }) => successor === null);
  return [
    ...tableLines([...heads, 'fields'], rows),
    ...listed.flatMap(({ successor, classes, pair }) => [
      ...(classes === null ? [] : [`${successor}: ${classChangeText(classes)}`]),
      ...(pair === null ? [] : factsOf(pair)),
    ]),
    ...(alone.length === 0 ? [] : [noSuccessor(alone, command)]),
    `A cutover changes the events at a receiver: ${changes.join('; ')}.`,
  ];
}

function phaseText(successor: string | null, pair: PairReport | null): string {
  return successor === null ? '-' : (pair?.phase ?? 'not begun');
}

function noSuccessor(alone: readonly ListedSource[], command: CommandText): string {
  const names = alone.map(({ source }) => source).join(', ');
  return `no successor: ${names}. Propose successors: ${command('succession plan')}`;
}

function factsOf(pair: PairReport): readonly string[] {
  const { successor, brake } = pair;
  const line = (text: string) => `${successor}: ${text}`;
  const alone = (what: string, { count, examples }: PairAlone) =>
    count === 0
      ? []
      : [line(`${count} ${what}, such as ${examples.map((id) => cleanText(id, 64)).join(', ')}`)];
  return [
    ...alone(`records only in ${pair.predecessor}`, pair.onlyOld),
    ...alone(`records only in ${successor}`, pair.onlyNew),
    ...alone('records delivered before the other side was read past them', pair.early),
    ...alone('records with a field that differs', pair.differing),
    ...alone('equal ids with times too far apart', pair.apart),
    ...pair.fields.map(({ path, count, types }) => {
      const kinds = types.map(([old, late]) => `${typeOf(old)} and ${typeOf(late)}`).join(', ');
      return line(`field ${cleanText(path, 100)} differs in ${count} records (${kinds})`);
    }),
    ...onlyFields(`only in ${pair.predecessor}`, pair.onlyOldFields).map(line),
    ...onlyFields(`only in ${successor}`, pair.onlyNewFields).map(line),
    ...(pair.waiting === 0 ? [] : [line(`${pair.waiting} records wait for the other side`)]),
    ...(brake === null
      ? []
      : [
          line(
            `too few records match since ${timeText(brake.since)}, such as ${brake.examples.join(', ')}; they are stored and not delivered. Set succeeds.id, fields or ignore, or cut over with --force`,
          ),
        ]),
    ...(pair.phase === 'shadow' ? pair.notReady.map((why) => line(`not ready: ${why}`)) : []),
    ...(pair.phase === 'ready' ? [line(`can be cut over: succession cutover ${successor}`)] : []),
  ];
}

function onlyFields(where: string, fields: Readonly<Record<string, number>>): readonly string[] {
  const names = Object.keys(fields).map((path) => cleanText(path, 60));
  return names.length === 0 ? [] : [`fields ${where}: ${names.slice(0, 20).join(', ')}`];
}

function countText(count: number | undefined): string {
  return count === undefined ? '-' : String(count);
}
