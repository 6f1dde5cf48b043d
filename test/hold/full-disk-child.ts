// A whole pipeline whose state directory is on a disk of its own, for a test that fills that disk. The list has a fixed
// number of pages; the sink accepts nothing until it is set to. Started by full-disk.test.ts, never imported.

import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineSink } from '../../src/contracts/definition.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import { repairDatabase } from '../../src/hold/repair.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { Store } from '../../src/hold/store.ts';
import { Pipeline, type Plan } from '../../src/pipeline.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { answerWith, cursorIn, madeUpList } from '../support/made-up-list.ts';
import { silent } from '../support/silent-log.ts';

/**
 * The test's requests: fill the disk, fill it and restart on it, empty it again, set the sink to accept events, report
 * the status, end.
 */
export type FullDiskAsk = 'fill' | 'fill and restart' | 'empty' | 'deliver' | 'state' | 'stop';

/** How things stand. */
export interface FullDiskState {
  readonly taken: readonly string[];
  readonly end: number;
  readonly stored: number;
  readonly free: number;
  readonly stream: { readonly error: string | null; readonly caughtUp: boolean };
}

/** Pages of the list, and the size of each. */
export const pages = 80;
const pageBytes = 60_000;

const clock = systemClock();
const stream = madeUpList(
  async (request, signal) => {
    await clock.sleep(10, signal);
    const n = Number(cursorIn(request) ?? 0);
    const next = n + 1 < pages ? String(n + 1) : null;
    return answerWith([{ id: String(n), pad: 'x'.repeat(pageBytes) }], { next_cursor: next });
  },
  { name: 'audit', source: 'audit' },
);

let open = false;
const taken: string[] = [];
const sink = defineSink({
  type: 'test',
  summary: '',
  fields: {},
  carries: ['json'],
  usualFormat: 'json',
  sample: { to: null, lines: () => [] },
  inFlightMax: 1,
  assurance: () => 'answered',
  open: async () => ({
    send: async ({ events }) => {
      if (!open) {
        const cause = new ExportError('sink_unreachable', 'testing: scripted', { next: 'nothing' });
        return { outcome: 'retry', cause };
      }
      taken.push(...events.map((event) => JSON.parse(Buffer.from(event.raw).toString()).id));
      return { outcome: 'delivered' };
    },
    close: async () => undefined,
  }),
  probe: async () => undefined,
});

const dir = process.argv[2] ?? '';
const ballast = join(dir, 'ballast');
const stateDir = join(dir, 'state');
const plan: Plan = {
  sources: [
    {
      name: 'audit',
      streams: [stream],
      reading: { id: 'id', time: [] },
      list: {
        order: 'oldest_first',
        start: 'beginning',
        lookbackMs: 1e9,
        rewindEveryMs: 1e9,
        reconcileEveryMs: 1e9,
        onCursorInvalid: 'halt',
      },
      collection: null,
      upstream: 'edge',
      schedule: { everyMs: 1_000 },
    },
  ],
  sinks: [
    {
      name: 's',
      definition: sink,
      settings: { type: 'test' },
      format: { name: 'json', contentType: 'text/plain', encode: ({ uid }) => uid },
      formatKey: 'json',
      bounds: { eventsMax: 10, bytesMax: 1e6 },
      waitMs: 0,
      retry: { minMs: 50, maxMs: 50 },
    },
  ],
  routes: [],
};

/** The state knows a sink that is no longer in the config, and keeps pages for it. */
if (process.argv[3] === 'removed') {
  mkdirSync(stateDir, { mode: 0o700 });
  const store = new Store({ dir: stateDir, sync: 'full', keepMs: 0, removedSinksMs: 1e9 });
  for (const own of [['s', 'old'], ['s']]) {
    const running = { own, others: [], isAll: true };
    store.transaction(() => store.knownSinks.settle(running, 0, Date.now()));
  }
  store.close();
  open = true;
}

/** A spool and a pipeline on it, opened as the program opens them. */
async function start() {
  const shared = { dir: stateDir, sync: 'full', sinks: ['s'] } as const;
  repairDatabase({ ...shared, streams: [stream.name], report: () => null });
  const spool = await openSpool({ ...shared, keepMs: 0, bytesMax: 1e9, removedSinksMs: 1e9 });
  const http = { request: () => Promise.reject(), close: async () => {} };
  const tools = { clock, log: silent, http };
  const pipeline = new Pipeline(plan, { spool, tools, random: () => 0 });
  const halt = new AbortController();
  const running = pipeline.run(halt.signal, 1_000);
  return { spool, pipeline, halt, running };
}

async function end(): Promise<FullDiskState> {
  running.halt.abort(new Error('enough'));
  await running.running;
  const last = await state();
  await running.spool.close();
  return last;
}

let running = await start();

function freeBytes(): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

/** Leaves not a block free. */
function fill(): void {
  for (let bytes = freeBytes(); bytes > 0; ) {
    try {
      writeFileSync(ballast, Buffer.alloc(bytes, 'x'), { flag: 'a' });
      bytes = freeBytes();
    } catch {
      bytes = Math.floor(bytes / 2);
    }
  }
}

async function state(): Promise<FullDiskState> {
  const { spool, pipeline } = running;
  const [{ error, caughtUpAt } = { error: null, caughtUpAt: null }] = pipeline.state.streams;
  return {
    taken,
    end: spool.gauge.end,
    stored: (await spool.progress('s')).position,
    free: freeBytes(),
    stream: { error: error?.code ?? null, caughtUp: caughtUpAt !== null },
  };
}

async function answer(asked: FullDiskAsk): Promise<FullDiskState> {
  switch (asked) {
    case 'fill':
      fill();
      return state();
    case 'empty':
      rmSync(ballast, { force: true });
      return state();
    case 'deliver':
      open = true;
      return state();
    case 'state':
      return state();
    case 'fill and restart':
      await end();
      fill();
      running = await start();
      return state();
    case 'stop':
      return end();
  }
}

process.on('message', ({ number, asked }: { number: number; asked: FullDiskAsk }) => {
  void answer(asked).then((said) => process.send?.({ number, said }));
});
process.send?.({ number: 0, said: await state() });
