// One seed: a collection on a server of some kind, a poller that reads it, and a course for both, step by step. Between
// any two steps entities may change and the process may be killed. Everything is drawn from the seed and time stands
// still between steps, so a seed does the same again.

import { CollectionPoller } from '../../../src/collection/poller.ts';
import type { CollectionStream } from '../../../src/contracts/source.ts';
import type { Log } from '../../../src/contracts/tools.ts';
import type { PollResult } from '../../../src/poll/outcome.ts';
import { Random } from '../../../src/sandbox/random.ts';
import { pagination } from '../../support/made-up-list.ts';
import { silent } from '../../support/silent-log.ts';
import { begin, Course, type Ended, hourMs, minuteMs, type Steps, said } from '../course.ts';
import { ModelSpool } from '../spool.ts';
import { type Tell, type Verdict, verdictOf, type World } from '../verdict.ts';
import { ModelCollection } from './model.ts';
import { Oracle } from './oracle.ts';
import { ModelServer } from './server.ts';
import { type Traits, traitsOf } from './traits.ts';

/** Runs one seed, and reports each step. */
export async function runCollection(
  seed: number,
  report: Tell = () => undefined,
): Promise<Verdict> {
  const traits = traitsOf(new Random(seed, 11));
  const world = new CollectionWorld(seed, traits, report);
  report(JSON.stringify(traits));
  return await verdictOf(seed, world);
}

class CollectionWorld implements World {
  readonly traits: Traits;
  readonly course: Course<CollectionPoller>;
  readonly oracle: Oracle;
  readonly #random: Random;
  readonly #collection: ModelCollection;
  readonly #server: ModelServer;
  readonly #spool: ModelSpool;
  /** What was held when it was looked last. */
  #looked = { commits: 0, changes: 0 };
  readonly #log: Log = {
    ...silent,
    warn: (_event, text) => this.course.tell(text),
    with: () => this.#log,
  };

  constructor(seed: number, traits: Traits, report: Tell) {
    this.traits = traits;
    this.#random = new Random(seed, 12);
    this.course = new Course({
      random: this.#random,
      tell: (line) => report(line.replace(/"epoch":"[^"]+"/, '"epoch":"…"')),
      crash: traits.crash,
      ...{ commitFails: traits.trouble / 2, happens: 0.03, requestsMax: 2_000 },
      happen: () => this.#change(),
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        this.course.now += ms;
      },
      start: (steps) => this.#start(steps),
      look: (ended) => this.#look(ended),
    });
    this.#spool = new ModelSpool((line) => this.course.tell(line), false);
    this.#collection = new ModelCollection(traits, new Random(seed, 13), begin);
    this.#server = new ModelServer(traits, this.#collection, new Random(seed, 14));
    const someone = () => this.#collection.rowsAt(begin).at(this.#random.below(12))?.id ?? null;
    if (traits.denied) this.#server.denied = someone();
    if (traits.blocked) this.#server.blocked = someone();
    const { deniedUntil } = this.#server;
    const { conditions } = this.#spool;
    this.oracle = new Oracle(traits, this.#collection, { conditions, deniedUntil });
  }

  get records(): number {
    return this.#spool.changes.length;
  }

  async trouble(): Promise<void> {
    const { course } = this;
    const { scope, lie, hidden, bulk, schema, loses, rules } = this.traits;
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
        this.#server.scopeUntil = course.now + this.#random.below(5 * hourMs);
        course.tell('the company is lost for a while');
      }
      if (lie && n === at.lie) {
        this.#server.lieUntil = course.now + this.#random.below(rules.settleMs - minuteMs);
        course.tell('the list says that it is shorter for a while');
      }
      if (hidden && n === at.hidden) {
        const rows = this.#collection.rowsAt(course.now);
        this.#server.hidden = rows.at(this.#random.below(rows.length || 1))?.id ?? null;
        course.tell(`${this.#server.hidden} is not listed any more`);
      }
      if (schema && n === at.schema) {
        this.#server.hasExtra = true;
        this.oracle.changeSchema(this.#collection.rowsAt(course.now).length);
        course.tell('entities have one more field');
      }
      if (bulk && n === at.bulk) this.#removeMany();
      if (loses !== null && n === at.loses) this.#loseState(loses === 'all');
      const result = await this.course.poll();
      course.pass(this.#waitAfter(result));
      if (this.traits.jumps && this.#random.chance(0.2)) course.jump();
    }
  }

  /** Half a day. */
  async calm(): Promise<void> {
    const { course } = this;
    course.tell('all is well from here on');
    course.isTroubled = false;
    Object.assign(this.#server, { troubled: false, hidden: null, denied: null, blocked: null });
    this.#server.scopeUntil = 0;
    this.#server.lieUntil = 0;
    this.#collection.settle();
    const everyMs = Math.max(this.traits.everyMs, 5 * minuteMs);
    for (const until = course.now + Math.max(14 * everyMs, 2 * hourMs); course.now < until; ) {
      const result = await this.course.poll();
      if (this.oracle.findings.length > 0) return;
      const isDone = result !== 'killed' && result.outcome === 'done';
      course.now += isDone ? (result.againMs ?? everyMs) : 5_000;
    }
    this.oracle.finish(this.#server);
  }

  #look({ result, begunAt }: Ended<CollectionPoller>): void {
    const { course } = this;
    course.tell(`poll: ${said(result)}`);
    const { commits, changes } = this.#spool;
    const troubles = this.#server.troubles(commits > this.#looked.commits);
    const texts = changes.slice(this.#looked.changes);
    this.#looked = { commits, changes: changes.length };
    const isPart = result !== 'killed' && result.outcome === 'done' && result.doubt !== undefined;
    this.oracle.observe(result, { begunAt, endedAt: course.now, troubles, isPart }, texts);
  }

  #waitAfter(result: PollResult | 'killed'): number {
    const { everyMs } = this.traits;
    if (result === 'killed') return this.#random.pick([1_000, everyMs, 3 * hourMs]);
    if (result.outcome !== 'done') return this.#random.pick([1_000, 20_000, 15 * minuteMs]);
    if (result.againMs !== undefined && this.#random.chance(0.9)) return result.againMs;
    return this.#random.pick([...Array<number>(8).fill(everyMs), 20 * minuteMs, 5 * hourMs]);
  }

  #change(): void {
    for (const what of this.#collection.change(this.course.now)) this.course.tell(what);
  }

  #removeMany(): void {
    this.course.tell('many go');
    this.#collection.removeMany(this.course.now);
  }

  #loseState(entities: boolean): void {
    this.course.tell(`the state is lost${entities ? ' with all entities' : ''}`);
    this.#spool.lose(entities);
    this.course.restart();
    this.oracle.loseState();
  }

  #start({ asking, commit }: Steps): CollectionPoller {
    const { paging, declared, pageRows, detail, parts, named, rules: reading } = this.traits;
    const get = asking((request) => {
      const answer = this.#server.answer(request, this.course.now);
      const text =
        answer.outcome === 'ok' ? Buffer.from(answer.body).toString() : answer.cause.message;
      this.course.tell(`${request.path} ${JSON.stringify(request.query)} -> ${text}`);
      return answer;
    });
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
    const { clock } = this.course;
    const spool = this.#spool.face(commit);
    return new CollectionPoller({ stream, spool, clock, log: this.#log, reading });
  }
}
