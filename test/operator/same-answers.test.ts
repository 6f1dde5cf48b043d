// Every command of an operator, on a stopped process, a running one, one on another machine by a real Apache Kafka, and on a state
// in Kafka that no process has: each prints the same and ends with the same code. Where no process runs, two commands say so,
// because they concern a running pipeline.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { testSome } from '../support/long.ts';
import { startMovingUpstreams } from '../support/moving/upstreams.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

interface Situation {
  readonly name: string;
  readonly isOnKafka: boolean;
  readonly isRunning: boolean;
}

const situations: readonly Situation[] = [
  { name: 'a running process', isOnKafka: false, isRunning: true },
  { name: 'a remote process', isOnKafka: true, isRunning: true },
  { name: 'a stopped process', isOnKafka: false, isRunning: false },
  { name: 'no process', isOnKafka: true, isRunning: false },
];

/** A command line, the code, and what is printed of stdout and stderr. */
type Row = readonly [words: string, code: number, printed: string];

const records = 40;
const later = 10;

const sinks = (pending: number, deadLetters: number) =>
  `SINK TYPE PENDING DEAD LETTERS IN THE CONFIG KEPT UNTIL RELEASED | disk file ${pending} 0 yes - 0 | post http ${pending} ${deadLetters} yes - 0`;
const refused = 'sending to post: RECEIVER answered 400';
const known = 'records already read';

const rows = ({ isRunning, isOnKafka }: Situation): readonly Row[] => [
  [
    'status',
    0,
    [
      isRunning ? 'running: PROCESS' : 'not running',
      'STREAM ORDER CHECKPOINT CAUGHT UP STATE NEXT POLL LAST ERROR',
      `old_audit ORDER TIME AGO ${isRunning ? 'waiting SOON' : 'stopped -'} -`,
      `new_audit ORDER TIME AGO ${isRunning ? 'waiting SOON' : 'stopped -'} -`,
      // A copy from Kafka has no pages, so their size is not known.
      isOnKafka ? 'spool: events held: 0' : 'spool: 0 B of 1.0 GiB, events held: 0',
      'SINK TYPE POSITION BACKLOG ALL UP TO DEAD LETTERS STATE LAST ERROR',
      `disk file END 0 TIME 0 ${isRunning ? 'idle' : 'stopped'} -`,
      'upstream old ends on DATE: the default for api: unified, since no response names a date',
    ].join(' | '),
  ],
  [
    'explain old_audit',
    0,
    [
      isRunning
        ? 'old_audit: was waiting when it was last noted'
        : 'old_audit: is not read, since nothing runs with this config; it resumes from its checkpoint',
      `running ${isRunning ? 'PROCESS' : 'no'}`,
      'checkpoint saved AGO; resumes at page 3',
    ].join(' | '),
  ],
  [
    'receipt --sink disk',
    0,
    `sink: disk (file) | everything up to: TIME | waiting: 0 | position: END | stream old_audit: TIME | stream new_audit: TIME`,
  ],
  [
    'checkpoint show --stream old_audit',
    0,
    'stream old_audit | checkpoint TIME | resumes at page 3 | read whole once yes | latest record TIME | caught up TIME | last error -',
  ],
  ...(['drain', 'undrain'] as const).map((word): Row => {
    const what = word === 'drain' ? 'running' : 'drained';
    const known = word === 'drain' && isRunning;
    const names = known ? 'known: own' : 'processes have their names from state.kafka.instance';
    const line = isOnKafka
      ? `there is no ${what} instance nothing; ${names}`
      : 'CONFIG has no state.kafka: its state is in DIRECTORY, of one process; see docs/state-in-kafka.md';
    return [`cluster ${word} nothing`, 64, `error: ${line}`];
  }),
  ['sinks', 0, sinks(0, 2)],
  [
    'sinks --json',
    0,
    '{sinks[{name kept missing_since kept_until pending released dead_letters in_config type}]}',
  ],
  [
    'retry disk',
    0,
    isRunning
      ? 'disk: retrying now'
      : 'disk: no process runs with this config; the next start retries at once',
  ],
  [
    'retry nothing',
    1,
    'there is no stream or sink nothing; known: old_audit, new_audit, disk, post',
  ],
  [
    'dead-letters list',
    0,
    `ID SINK TIME STREAM UID REASON | 1 post TIME old_audit UID ${refused} | 2 post TIME old_audit UID ${refused}`,
  ],
  [
    'dead-letters list --json',
    0,
    '{id sink uid source stream at reason} | {id sink uid source stream at reason}',
  ],
  ['dead-letters retry --uid FIRST', 0, 'post: 1 put back, to be sent again'],
  [
    'dead-letters drop',
    1,
    '1 dead letter would be deleted for good; nothing was dropped: --yes drops them',
  ],
  ['dead-letters drop --yes', 0, 'dropped 2 of post: UID'],
  ['dead-letters retry', 0, 'no dead letters'],
  ['dead-letters list', 0, 'no dead letters'],
  [
    'dead-letters add --sink post --yes',
    isRunning ? 0 : 1,
    isRunning
      ? 'post: no event is a suspect, that is, refused while the sink accepts nothing; nothing was moved. The suspects of each sink: npx sluice status -c CONFIG --json'
      : 'no process runs with this config: start it, then suspects can be moved',
  ],
  // A running process has sent what was put back, sooner or later.
  ...(isRunning ? [] : [['sinks', 0, sinks(1, 0)] as const]),
  [
    'sinks remove disk',
    1,
    'the sink disk is not removed: the config has it. Remove it from the config first: restart without it, or reload with --allow-removal.',
  ],
  ['sinks remove nothing', 1, 'there is no sink nothing; known: disk, post'],
  [
    'succession cutover new_audit',
    0,
    'new_audit: new_audit delivers from now on, old_audit does not',
  ],
  ['succession cutover new_audit', 1, 'new_audit: not done: it is cut over already'],
  [
    'succession rollback new_audit',
    0,
    'new_audit: old_audit delivers from now on, new_audit does not',
  ],
  ['backfill list', 0, 'no backfill was begun'],
  ['backfill cancel nothing', 64, 'error: there is no backfill nothing; none was begun'],
  [
    'checkpoint rewind --stream old_audit --to 2020-01-01T00:00:00Z',
    0,
    `old_audit: the stream is read again from its start | old_audit: ${known} are still known and not delivered again; --forget would deliver those read since then again`,
  ],
  [
    'checkpoint rewind --stream nothing --to 2020-01-01T00:00:00Z',
    64,
    'error: --stream: there is no stream nothing; known: old_audit, new_audit',
  ],
  [
    'checkpoint reset --stream old_audit',
    0,
    `old_audit: checkpoint deleted; the stream is read again from its start | ${known} (at least half a million) are still known and not delivered again; --forget would deliver them again`,
  ],
  [
    'checkpoint reset --stream old_audit --forget',
    0,
    `old_audit: checkpoint deleted; the stream is read again from its start | ${records + later} records are forgotten: those that upstream still has are delivered again`,
  ],
];

testSome(2, situations)('each command prints the same of $name', async (situation) => {
  const { isOnKafka, isRunning } = situation;
  const dir = tempDir();
  const pair = await startMovingUpstreams({ pageMax: 20 });
  const marks = pair
    .addMany(records)
    .slice(0, 2)
    .map(({ mark }) => mark);
  const receiver = await startHttpReceiver();
  receiver.answer(({ body }) => {
    const isRefused = marks.some((mark) => body.includes(mark));
    return { answer: 'reply', status: isRefused ? 400 : 200 };
  });
  const kafka = {
    brokers: await kafkaBrokers(),
    prefix: `p-${crypto.randomUUID()}`,
    session_timeout: '6s',
  };
  const config = (instance: string) => {
    const usual = { type: 'logs', every: '100ms', rewind_every: '1s', reconcile_every: '1s' };
    const file = join(dir, `${instance}.yaml`);
    const text = {
      state: { dir: join(dir, instance), ...(isOnKafka && { kafka: { ...kafka, instance } }) },
      upstreams: pair.upstreams,
      sources: {
        old_audit: {
          ...{ ...usual, upstream: 'old', path: '/audit', time: ['eventTime'] },
          pagination: { style: 'page', page_param: 'page', size_param: 'page_size' },
        },
        new_audit: {
          ...{ ...usual, upstream: 'new', path: '/api/logs/v1/audit', time: ['event_time'] },
          ...{ pagination: { style: 'cursor' } },
          succeeds: { source: 'old_audit', patience: '1m', overlap: '1s' },
        },
      },
      sinks: {
        disk: { type: 'file', path: join(dir, 'events.ndjson') },
        post: { type: 'http', url: receiver.url, format: 'json' },
      },
    };
    writeFileSync(file, JSON.stringify(text));
    return file;
  };
  const own = config('own');
  const elsewhere = isOnKafka ? config('elsewhere') : own;
  const command = (...words: readonly string[]) => runHere([...words, '-c', elsewhere]);
  const lines = async (...words: readonly string[]) =>
    (await command(...words)).stdout.split('\n').slice(0, -1);

  const sluice = startSluice(['run', '-c', own]);
  await sluice.waitForLine('running');
  pair.addMany(later, { timeMs: Date.now() });
  let seen = '';
  const isReady = async () => {
    const letters = await lines('dead-letters', 'list', '--json');
    const { sinks } = JSON.parse((await command('sinks', '--json')).stdout);
    const { sources } = JSON.parse((await command('succession', '--json')).stdout);
    seen = JSON.stringify({ letters: letters.length, sinks, sources });
    const isSent = sinks.every(({ pending }: { pending: number }) => pending === 0);
    return isSent && letters.length === 2 && sources[0]?.phase === 'ready' && letters;
  };
  const letters = await waitUntil(isReady, {
    what: () => `all to be sent: ${seen}`,
    everyMs: 500,
  });
  const [first] = letters.map((line: string) => JSON.parse(line) as { readonly uid: string });
  receiver.answer({ answer: 'reply', status: 200 });
  if (!isRunning) {
    await sluice.kill();
    // The group lists a process that has ended until its session is over.
    await waitUntil(async () => (await lines('status'))[0]?.startsWith('not running'), {
      what: 'no process to be listed',
      everyMs: 500,
    });
  }

  const print = async (words: string): Promise<Row> => {
    const args = words.replace('FIRST', first?.uid ?? '').split(' ');
    const { stdout, stderr, exitCode } = await command(...args);
    const lines = plain(`${stdout}${stderr}`).split(' | ');
    const [name = ''] = args;
    const some = stable[name === 'checkpoint' ? args.slice(0, 2).join(' ') : name];
    const text = lines.filter((line) => some?.test(line) ?? true).join(' | ');
    return [words, exitCode ?? -1, text];
  };
  const printed: Row[] = [];
  for (const row of rows(situation)) {
    const [words] = row;
    let found = await print(words);
    // Events of the running process may arrive at any time, and their positions are stored a moment later.
    const end = performance.now() + settledMs;
    while (changesNothing.test(words) && !isDeepStrictEqual(found, row)) {
      if (performance.now() > end) break;
      await delay(500);
      found = await print(words);
    }
    printed.push(found);
  }
  if (isRunning) expect((await sluice.kill()).exitCode).toBe(0);

  expect(printed).toEqual(rows(situation));
});

/** Commands that can be repeated, and how long until they print what is settled. */
const changesNothing =
  /^(status|explain|receipt|checkpoint show|sinks(?! remove)|dead-letters list)\b/;
const settledMs = 30_000;

/** Of commands that show a state: the lines that do not depend on the moment. */
const stable: Readonly<Record<string, RegExp>> = {
  status: /^((not )?running|STREAM|SINK|\w+_audit |spool|disk|upstream )/,
  explain: /^(old_audit|running|checkpoint) ?/,
  receipt: /^(sink|everything|waiting|position|stream)/,
  'checkpoint show': /^(?!order|records known|positions)/,
};

/** A line for each line: of JSON its keys, and of each time, id and number of a process that there is one. */
function plain(text: string): string {
  const json = /^\{[\s\S]*\}\n$/.test(text) ? keysIn(text) : null;
  return (
    (json ?? text)
      .replaceAll(/\b[0-9a-f]{64}\b/g, 'UID')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/(own, )?process \d+ on \S+/g, 'PROCESS')
      .replaceAll(/\b\d+s ago/g, 'AGO')
      .replaceAll(/\S+\.yaml\b/g, 'CONFIG')
      .replaceAll(/state is in [^ ,]+/g, 'state is in DIRECTORY')
      .replaceAll(/waiting +(now|in \S+)/g, 'waiting SOON')
      .replaceAll(/(?<=_audit +)\w+(?= +TIME)/g, 'ORDER')
      .replaceAll(/ends on \S+ in \d+ days/g, 'ends on DATE')
      // Its config is an event too.
      .replaceAll(/(?<=(disk +file +|position: ))5\d\b/g, 'END')
      .replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, 'RECEIVER')
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().replaceAll(/ +/g, ' '))
      .join(' | ')
  );
}

/** The keys of a JSON text, or of one on each line. */
function keysIn(text: string): string | null {
  try {
    return keysOf(JSON.parse(text));
  } catch {
    return text
      .trimEnd()
      .split('\n')
      .map((line) => keysOf(JSON.parse(line)))
      .join('\n');
  }
}

function keysOf(value: unknown): string {
  if (Array.isArray(value)) return `[${[...new Set(value.map(keysOf))].join(', ')}]`;
  if (typeof value !== 'object' || value === null) return '';
  return `{${Object.entries(value)
    .map(([key, one]) => `${key}${keysOf(one)}`)
    .join(' ')}}`;
}
