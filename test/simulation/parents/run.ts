// One seed: parents that come, grow, are denied and go, and a poller that reads a small list or an
// object of each, with its state in the real database. Everything is drawn from the seed, so a seed
// does the same again.

import type { ListReading } from '../../../src/contracts/definition.ts';
import type { ListStream, ParentsStream } from '../../../src/contracts/source.ts';
import type { Append } from '../../../src/contracts/spool.ts';
import { uidBytes } from '../../../src/contracts/spool.ts';
import { ParentsPoller } from '../../../src/parents/poller.ts';
import type { PollResult } from '../../../src/poll/outcome.ts';
import { Random } from '../../../src/sandbox/random.ts';
import { cutRecords } from '../../../src/tools/record-list.ts';
import { madeUpList, pagination } from '../../support/made-up-list.ts';
import { silent } from '../../support/silent-log.ts';
import { Course, hourMs, minuteMs, type Steps, said, unanswered } from '../course.ts';
import { type Tell, type Verdict, verdictOf, type World } from '../verdict.ts';
import { change, spoolOf } from './held.ts';
import { Oracle } from './oracle.ts';
import { ModelParents, type Parent } from './server.ts';
import { type Traits, traitsOf } from './traits.ts';

const list: ListReading = {
  ...{ order: 'auto', start: 'beginning', lookbackMs: 10 * minuteMs },
  ...{ rewindEveryMs: 15 * minuteMs, reconcileEveryMs: hourMs, onCursorInvalid: 'rewalk' },
};

/** Worlds so far: each has a stream of its own, also where a seed is run twice. */
let worlds = 0;

/** Runs one seed, and reports each step. */
export async function runParents(seed: number, report: Tell = () => undefined): Promise<Verdict> {
  const traits = traitsOf(new Random(seed, 21));
  const world = new ParentsWorld(seed, traits, report);
  report(JSON.stringify(traits));
  return await verdictOf(seed, world);
}

class ParentsWorld implements World {
  readonly traits: Traits;
  readonly course: Course<ParentsPoller>;
  readonly oracle: Oracle;
  records = 0;
  readonly #name: string;
  readonly #random: Random;
  readonly #upstream: ModelParents;
  readonly #uids = new Set<string>();

  constructor(seed: number, traits: Traits, report: Tell) {
    worlds += 1;
    this.#name = `src${worlds}`;
    this.traits = traits;
    this.#random = new Random(seed, 22);
    this.#upstream = new ModelParents(traits, new Random(seed, 23));
    this.course = new Course({
      ...{ random: this.#random, tell: report, crash: traits.crash },
      ...{ commitFails: traits.trouble / 2, happens: 0.03, requestsMax: 1_000 },
      happen: () => this.#happen(),
      sleep: () => unanswered(),
      start: (steps) => this.#start(steps),
      look: ({ result }) => {
        this.course.tell(`poll: ${said(result)}`);
        this.oracle.look();
      },
    });
    this.oracle = new Oracle(traits, this.#upstream.parents);
    for (let n = 0; n < traits.parents; n += 1) this.#add();
  }

  async trouble(): Promise<void> {
    const { outage, refused, bent, failing, jumps } = this.traits;
    const polls = 6 + this.#random.below(30);
    const at = { outage: this.#random.below(polls), refused: this.#random.below(polls) };
    const bentAt = this.#random.below(polls);
    const [unlucky] = this.#upstream.parents.values();
    if (failing && unlucky !== undefined && this.traits.parents > 1) unlucky.status = 500;
    for (let n = 0; n < polls && this.oracle.findings.length === 0; n += 1) {
      if (outage !== null && n === at.outage) {
        this.#upstream.outageUntil = this.course.now + this.#random.below(4 * hourMs);
        this.course.tell(`upstream answers ${outage} for a while`);
      }
      if (refused !== null && n === at.refused) this.#refuse(refused);
      if (bent !== null && n === bentAt) this.#bend();
      const result = await this.course.poll();
      this.course.pass(this.#waitAfter(result));
      if (jumps && this.#random.chance(0.2)) this.course.jump();
    }
  }

  async calm(): Promise<void> {
    this.course.tell('all is well from here on');
    this.course.isTroubled = false;
    this.#upstream.troubled = false;
    this.#upstream.outageUntil = 0;
    this.#upstream.bent = null;
    for (const parent of this.#upstream.parents.values()) {
      const isBack = parent.status === 500 || this.#random.chance(0.5);
      if (parent.status === null || !isBack) continue;
      this.course.tell(`${parent.id} is back`);
      parent.status = null;
    }
    for (const parent of this.#upstream.parents.values()) {
      // A parent reported as lost must be noticed as existing again.
      if (!this.oracle.isLost(parent.id)) continue;
      parent.isNoticed = this.traits.from === 'noticed';
      if (parent.isNoticed) this.#notice(parent);
    }
    let isWell = false;
    let waitMs = 0;
    const { sweepMs, everyMs } = this.traits;
    const [begun, until] = [this.course.now, this.course.now + 2 * sweepMs + 3 * hourMs];
    while (this.course.now < until) {
      const result = await this.course.poll();
      if (this.oracle.findings.length > 0) return;
      isWell = result !== 'killed' && result.outcome === 'done';
      // Little comes of most polls by then.
      const restMs = this.course.now - begun < hourMs ? everyMs : 4 * everyMs;
      waitMs = isWell ? restMs : Math.min(everyMs, waitMs + 5_000);
      this.course.now += waitMs;
    }
    const hasOther = [...this.#upstream.parents.values()].some(({ status }) => status === null);
    if (hasOther) this.oracle.lookForLost(this.course.now);
    this.oracle.finish(isWell || !hasOther);
  }

  #waitAfter(result: PollResult | 'killed'): number {
    const { everyMs } = this.traits;
    if (result === 'killed') return this.#random.pick([1_000, everyMs, 3 * hourMs]);
    if (result.outcome !== 'done') return this.#random.pick([1_000, 20_000, 15 * minuteMs]);
    return this.#random.pick([...Array<number>(8).fill(everyMs), 20 * minuteMs, 5 * hourMs]);
  }

  #happen(): void {
    const parents = [...this.#upstream.parents.values()];
    if (this.traits.from === 'noticed' && parents.length < 20 && this.#random.chance(0.2)) {
      this.#add();
      return;
    }
    const parent = this.#random.pick(parents);
    this.#upstream.grow(parent, this.course.now);
    this.course.tell(`${parent.id} has ${parent.texts.length}`);
    if (this.traits.from === 'noticed' && this.#random.chance(this.traits.noticed)) {
      this.#notice(parent);
    }
  }

  #add(): void {
    const parent = this.#upstream.add(this.course.now);
    this.course.tell(`${parent.id} comes`);
    if (this.traits.from === 'noticed') this.#notice(parent);
  }

  /** Another source has shown it. */
  #notice(parent: Parent): void {
    this.course.tell(`${parent.id} is noticed`);
    parent.asksWhenDone = 0;
    const parents = [{ stream: this.#name, id: parent.id, as: 'noticed' as const }];
    change({ stream: 'other', pages: [], checkpoint: {}, parents }, this.course.clock.now());
  }

  #refuse(status: 403 | 404): void {
    const parent = this.#random.pick([...this.#upstream.parents.values()]);
    this.course.tell(`${parent.id} is refused with ${status}`);
    parent.status = status;
  }

  #bend(): void {
    const { id } = this.#random.pick([...this.#upstream.parents.values()]);
    this.course.tell(`${id} is ${this.traits.bent} for a while`);
    this.#upstream.bent = { id, until: this.course.now + this.#random.below(5 * hourMs) };
  }

  #start({ asking, commit }: Steps): ParentsPoller {
    const { clock } = this.course;
    const { of, from, parents: count, sweepMs, immutable, pageRows } = this.traits;
    const ids = Array.from({ length: count }, (_, n) => `p${n}`);
    const get = asking((request) => {
      const answer = this.#upstream.answer(request, this.course.now);
      const text =
        answer.outcome === 'ok' ? Buffer.from(answer.body).toString() : answer.cause.message;
      this.course.tell(`${request.path} ${JSON.stringify(request.query)} -> ${text}`);
      return answer;
    });
    const listOf = (id: string): ListStream =>
      madeUpList(get, {
        ...{ name: `${this.#name}:${id}`, source: this.#name, records: 'log', immutable },
        request: { path: `/${id}`, template: '/{parent_id}', query: [] },
        pagination: { ...pagination, style: of === 'list' ? 'cursor' : 'none' },
        ...{ pageLimit: pageRows, fingerprint: `made up ${id}` },
      });
    const stream: ParentsStream = {
      ...{ kind: 'parents', name: this.#name, source: this.#name, records: 'log', paths: [] },
      ...{ fingerprint: 'made up', listOf },
      ...(of === 'object' && { object: { isFinal: ({ status }) => status === 'done' } }),
    };
    const spool = spoolOf((entry) => this.#take(entry), { now: clock.now, step: commit });
    return new ParentsPoller({
      ...{ stream, spool, clock, log: silent, list },
      random: () => this.#random.next(),
      reading: { each: { ids }, sweepMs },
      known: async function* () {
        if (from === 'ids') yield ids;
      },
    });
  }

  #take({ pages }: Append): void {
    for (const { body, items, kept, uids, context } of pages) {
      const { starts, ends } = cutRecords(body, items);
      const count = uids.length / uidBytes;
      for (let n = 0; n < count; n += 1) {
        const at = kept === null ? n : (kept[n] ?? 0);
        const text = Buffer.from(body.subarray(starts[at], ends[at])).toString();
        const uid = Buffer.from(uids.subarray(n * uidBytes, (n + 1) * uidBytes)).toString('hex');
        if (this.#uids.has(uid)) this.oracle.findings.push(`two events share a uid: ${text}`);
        this.#uids.add(uid);
        this.records += 1;
        this.course.tell(`holds ${text}`);
        this.oracle.take(text, { kind: context.kind, parent: context.parent });
      }
    }
  }
}
