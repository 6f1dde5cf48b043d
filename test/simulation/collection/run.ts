// One seed: a collection on a server of some kind, a poller that reads it, and what happens to
// them, step by step. Between any two steps entities may change and the process may be killed.
// Everything is drawn from the seed and time stands still between steps, so a seed does the same
// again.

import { ExportError } from '../../../src/contracts/errors.ts';
import type { CollectionStream } from '../../../src/contracts/source.ts';
import type { Clock, Log } from '../../../src/contracts/tools.ts';
import type { UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { CollectionPoller } from '../../../src/fetch/collection/poller.ts';
import type { PollResult } from '../../../src/fetch/outcome.ts';
import { Random } from '../../../src/sandbox/random.ts';
import { pagination } from '../../support/made-up-list.ts';
import { silent } from '../../support/silent-log.ts';
import { type Life, newLife, passStep } from '../life.ts';
import { ModelSpool } from '../spool.ts';
import type { Tell, Verdict } from '../verdict.ts';
import { ModelCollection } from './model.ts';
import { Oracle } from './oracle.ts';
import { ModelServer } from './server.ts';
import { type Traits, traitsOf } from './traits.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const begin = Date.UTC(2026, 0, 1);
/** So many in one poll are a hot loop: the collections are small. */
const requestsMax = 2_000;

/** Runs one seed; `tell` is told each step. */
export async function runCollection(seed: number, tell: Tell = () => undefined): Promise<Verdict> {
  const traits = traitsOf(new Random(seed, 11));
  const world = new World(seed, traits, tell);
  tell(JSON.stringify(traits));
  try {
    await world.trouble();
    await world.calm();
  } catch (error) {
    world.oracle.findings.push(`the poller threw: ${(error as Error).stack}`);
  }
  const { requests, crashes, oracle, records } = world;
  return { seed, traits, findings: oracle.findings, requests, records, crashes };
}

interface Process extends Life {
  readonly poller: CollectionPoller;
}

class World {
  readonly oracle: Oracle;
  requests = 0;
  crashes = 0;
  readonly #traits: Traits;
  readonly #random: Random;
  readonly #collection: ModelCollection;
  readonly #server: ModelServer;
  readonly #spool: ModelSpool;
  readonly #tell: Tell;
  readonly #clock: Clock;
  #now = begin;
  /** What the clock shows beside the time that it is. */
  #skewMs = 0;
  #troubled = true;
  #requestsLeft = 0;
  /** The changes told so far that were looked at. */
  #looked = 0;
  #process: Process;
  readonly #log: Log = {
    ...silent,
    warn: (text) => this.#tell(text),
    with: () => this.#log,
  };

  constructor(seed: number, traits: Traits, tell: Tell) {
    this.#traits = traits;
    this.#random = new Random(seed, 12);
    this.#tell = (line) => {
      const same = line.replace(/"epoch":"[^"]+"/, '"epoch":"…"');
      tell(`${new Date(this.#now).toISOString().slice(8, 23)} ${same}`);
    };
    this.#spool = new ModelSpool(this.#tell, false);
    this.#collection = new ModelCollection(traits, new Random(seed, 13), begin);
    this.#server = new ModelServer(traits, this.#collection, new Random(seed, 14));
    const someone = () => this.#collection.rowsAt(begin).at(this.#random.below(12))?.id ?? null;
    if (traits.denied) this.#server.denied = someone();
    if (traits.blocked) this.#server.blocked = someone();
    this.#clock = {
      now: () => this.#now + this.#skewMs,
      monotonic: () => this.#now,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        this.#now += ms;
      },
    };
    const { deniedUntil } = this.#server;
    const { conditions } = this.#spool;
    this.oracle = new Oracle(traits, this.#collection, { conditions, deniedUntil });
    this.#process = this.#start();
  }

  get records(): number {
    return this.#spool.changes.length;
  }

  /** Polls with all that may go wrong. */
  async trouble(): Promise<void> {
    const { scope, lie, hidden, bulk, schema, loses, rules } = this.#traits;
    const polls = 6 + this.#random.below(30);
    const some = () => this.#random.below(polls);
    const at = {
      scope: some(),
      lie: some(),
      bulk: some(),
      schema: some(),
      loses: some(),
      hidden: some(),
    };
    for (let n = 0; n < polls && this.oracle.findings.length === 0; n += 1) {
      if (scope !== null && n === at.scope) {
        this.#server.scopeUntil = this.#now + this.#random.below(5 * hourMs);
        this.#tell('the company is lost for a while');
      }
      if (lie && n === at.lie) {
        this.#server.lieUntil = this.#now + this.#random.below(rules.settleMs - minuteMs);
        this.#tell('the list says that it is shorter for a while');
      }
      if (hidden && n === at.hidden) {
        const rows = this.#collection.rowsAt(this.#now);
        this.#server.hidden = rows.at(this.#random.below(rows.length || 1))?.id ?? null;
        this.#tell(`${this.#server.hidden} is not listed any more`);
      }
      if (schema && n === at.schema) {
        this.#server.hasExtra = true;
        this.oracle.changeSchema(this.#collection.rowsAt(this.#now).length);
        this.#tell('entities have one more field');
      }
      if (bulk && n === at.bulk) this.#removeMany();
      if (loses !== null && n === at.loses) this.#loseState(loses === 'all');
      const result = await this.#poll();
      this.#pass(this.#waitAfter(result));
      if (this.#traits.jumps && this.#random.chance(0.2)) this.#jump();
    }
  }

  /** Polls with nothing going wrong any more, for half a day. */
  async calm(): Promise<void> {
    if (this.oracle.findings.length > 0) return;
    this.#tell('all is well from here on');
    this.#troubled = false;
    Object.assign(this.#server, { troubled: false, hidden: null, denied: null, blocked: null });
    this.#server.scopeUntil = 0;
    this.#server.lieUntil = 0;
    this.#collection.settle();
    const everyMs = Math.max(this.#traits.everyMs, 5 * minuteMs);
    for (const until = this.#now + Math.max(14 * everyMs, 2 * hourMs); this.#now < until; ) {
      const result = await this.#poll();
      if (this.oracle.findings.length > 0) return;
      const isDone = result !== 'killed' && result.outcome === 'done';
      this.#now += isDone ? (result.againMs ?? everyMs) : 5_000;
    }
    this.oracle.finish(this.#server);
  }

  async #poll(): Promise<PollResult | 'killed'> {
    const begunAt = this.#now;
    const { commits } = this.#spool;
    const process = this.#process;
    this.#requestsLeft = requestsMax;
    process.stop = new AbortController();
    const { signal } = process.stop;
    const polled = process.poller.poll(signal).catch((error: unknown) => {
      if (signal.aborted) return 'killed' as const;
      throw error;
    });
    const result = await Promise.race([polled, process.killed]);
    if (result === 'killed') {
      this.crashes += 1;
      process.alive = false;
      this.#process = this.#start();
    }
    this.#tell(`poll: ${said(result)}`);
    const troubles = this.#server.troubles(this.#spool.commits > commits);
    const texts = this.#spool.changes.slice(this.#looked);
    this.#looked = this.#spool.changes.length;
    const isPart = result !== 'killed' && result.outcome === 'done' && result.doubt !== undefined;
    this.oracle.observe(result, { begunAt, endedAt: this.#now, troubles, isPart }, texts);
    return result;
  }

  #waitAfter(result: PollResult | 'killed'): number {
    const { everyMs } = this.#traits;
    if (result === 'killed') return this.#random.pick([1_000, everyMs, 3 * hourMs]);
    if (result.outcome !== 'done') return this.#random.pick([1_000, 20_000, 15 * minuteMs]);
    if (result.againMs !== undefined && this.#random.chance(0.9)) return result.againMs;
    return this.#random.pick([...Array<number>(8).fill(everyMs), 20 * minuteMs, 5 * hourMs]);
  }

  /** Time passes between two polls, and entities change meanwhile. */
  #pass(ms: number): void {
    const until = this.#now + ms;
    for (let n = this.#random.below(3); n > 0; n -= 1) {
      this.#now += this.#random.below((until - this.#now) / 2);
      this.#change();
    }
    this.#now = until;
  }

  #change(): void {
    for (const what of this.#collection.change(this.#now)) this.#tell(what);
  }

  #removeMany(): void {
    this.#tell('many go');
    this.#collection.removeMany(this.#now);
  }

  #loseState(entities: boolean): void {
    this.#tell(`the state is lost${entities ? ' with all entities' : ''}`);
    this.#spool.lose(entities);
    this.#process.alive = false;
    this.#process = this.#start();
    this.oracle.loseState();
  }

  #jump(): void {
    const by = this.#random.pick([
      -30 * 24 * hourMs,
      -hourMs,
      -10_000,
      10_000,
      hourMs,
      24 * hourMs,
    ]);
    this.#skewMs += by;
    this.#tell(`the clock is set by ${by / 1_000} s`);
  }

  #start(): Process {
    const process = newLife();
    const step = (what: string) => this.#step(process, what);
    const { paging, declared, pageRows, detail, parts, named } = this.#traits;
    const get = async (request: UpstreamRequest, signal: AbortSignal) => {
      await step('asks');
      this.requests += 1;
      this.#requestsLeft -= 1;
      if (this.#requestsLeft < 0) throw new Error(`more than ${requestsMax} requests in one poll`);
      const answer = this.#server.answer(request, this.#now);
      const text =
        answer.outcome === 'ok' ? Buffer.from(answer.body).toString() : answer.cause.message;
      this.#tell(`${request.path} ${JSON.stringify(request.query)} -> ${text}`);
      await step('is answered');
      signal.throwIfAborted();
      return answer;
    };
    const stream: CollectionStream = {
      kind: 'collection',
      ...{ name: 'src/c-1/items', source: 'src', company: 'c-1', resource: 'items', paths: [] },
      fingerprint: 'made up',
      entity: { kind: 'item', ids: named ? ['id'] : [] },
      list: {
        ...{ name: 'src/c-1/items', upstream: { get }, sorting: [], id: named ? 'id' : null },
        request: { path: '/items', template: '/items', query: [] },
        pagination: { ...pagination, style: declared ? paging : 'shown' },
        pageLimit: declared ? pageRows : null,
        ignore: ['updated_at'],
      },
      ...(detail && {
        detail: {
          request: (id: string) => ({
            ...{ path: `/items/${encodeURIComponent(id)}`, template: '/items/{id}', query: [] },
          }),
          ...(parts && {
            parts: { kind: 'rule', ids: ['id'], isList: (name: string) => name === 'rules' },
          }),
        },
      }),
    };
    const spool = this.#spool.face(async () => {
      await step('commits');
      if (this.#happens(this.#traits.trouble / 2)) {
        this.#tell('a commit fails');
        throw new ExportError('disk_full', 'simulating: no space', { next: 'nothing' });
      }
    });
    const { rules: reading } = this.#traits;
    const means = { stream, spool, clock: this.#clock, log: this.#log, reading };
    return Object.assign(process, { poller: new CollectionPoller(means) });
  }

  #step(process: Life, what: string): Promise<void> {
    return passStep(process, what, {
      random: this.#random,
      crash: this.#traits.crash,
      happens: (chance) => this.#happens(chance),
      pass: () => {
        this.#now += 5 + this.#random.below(50);
        if (this.#happens(0.03)) this.#change();
      },
      tell: this.#tell,
    });
  }

  #happens(chance: number): boolean {
    return this.#troubled && this.#random.chance(chance);
  }
}

function said(result: PollResult | 'killed'): string {
  if (result === 'killed') return result;
  if (result.outcome !== 'done') return `${result.outcome} ${result.cause.message}`;
  return `done, ${result.fresh} new${result.againMs === undefined ? '' : ', to be looked at again'}`;
}
