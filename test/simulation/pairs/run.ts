// One seed: a pair of APIs over one ledger, the process that reads both, and an operator who pairs
// them, moves them and moves them back. Between any two steps records may come and the process may
// be killed. Everything is drawn from the seed, so a seed does the same again.

import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Store } from '../../../src/hold/store.ts';
import type { PollResult } from '../../../src/poll/outcome.ts';
import { Random } from '../../../src/sandbox/random.ts';
import { roomyDir } from '../../support/memory.ts';
import { begin, Course, hourMs, minuteMs, type Steps, said, unanswered } from '../course.ts';
import { type Tell, type Verdict, verdictOf, type World } from '../verdict.ts';
import type { Brake } from './brake.ts';
import { Ledger } from './ledger.ts';
import { Oracle } from './oracle.ts';
import { type Job, PairProcess } from './process.ts';
import { ModelApi } from './server.ts';
import { type SideStream, sourceOf, streamsOf } from './sources.ts';
import { type Side, type Traits, traitsOf } from './traits.ts';

/** Runs one seed, and reports each step. */
export async function runPairs(seed: number, tell: Tell = () => undefined): Promise<Verdict> {
  const traits = traitsOf(new Random(seed, 31));
  const world = new PairWorld(seed, traits, tell);
  tell(JSON.stringify(traits));
  try {
    return await verdictOf(seed, world);
  } finally {
    world.close();
  }
}

class PairWorld implements World {
  readonly traits: Traits;
  readonly course: Course<PairProcess>;
  readonly oracle: Oracle;
  readonly #random: Random;
  readonly #ledger: Ledger;
  readonly #apis: Readonly<Record<Side, ModelApi>>;
  readonly #streams: Readonly<Record<Side, readonly SideStream[]>>;
  readonly #dir: string;
  #process: PairProcess | null = null;
  #steps: Steps | null = null;
  /** Which sources the config has. */
  #sides: readonly Side[];

  constructor(seed: number, traits: Traits, tell: Tell) {
    this.traits = traits;
    this.#random = new Random(seed, 32);
    this.#dir = freshState();
    this.#sides = traits.alonePolls > 0 ? ['old'] : ['old', 'new'];
    this.#ledger = new Ledger(traits, new Random(seed, 33), begin);
    const apiOf = (side: Side, salt: number) =>
      new ModelApi(side, { traits, ledger: this.#ledger, random: new Random(seed, salt) });
    this.#apis = { old: apiOf('old', 34), new: apiOf('new', 35) };
    this.course = new Course({
      ...{ random: this.#random, tell, crash: traits.crash, commitFails: 0 },
      ...{ happens: 0.03, requestsMax: 2_000 },
      happen: () => this.#grow(),
      sleep: () => unanswered(),
      start: (steps) => this.#start(steps),
      look: ({ result }) => this.course.tell(`poll: ${said(result)}`),
    });
    const streams = (side: Side) =>
      streamsOf(side, traits, async (request, { name, company }, signal) => {
        this.oracle.asked(name);
        const api = this.#apis[side];
        const answer = () => api.answer(request, company, this.course.now);
        return (await this.#steps?.asking(answer)(request, signal)) ?? unanswered();
      });
    this.#streams = { old: streams('old'), new: streams('new') };
    this.oracle = new Oracle({
      ...{ traits, apis: this.#apis, streams: this.#streams, records: this.#ledger.records },
      now: () => this.course.clock.now(),
      tell: (line) => this.course.tell(line),
      report: () => this.#process?.store.pairReports(this.course.clock.now())[0] ?? null,
    });
  }

  get records(): number {
    return this.#ledger.records.length;
  }

  close(): void {
    this.#process?.store.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async trouble(): Promise<void> {
    const polls = 6 + this.#random.below(16);
    const { alonePolls, dies } = this.traits;
    const diesAt = this.#random.below(polls);
    const isOver = () => this.oracle.findings.length > 0;
    for (let n = 0; n < polls + alonePolls && !isOver(); n += 1) {
      if (n === alonePolls && this.#sides.length < 2) this.#configure(['old', 'new']);
      this.#letFail();
      if (dies !== null && n === diesAt) {
        this.course.tell(`${dies.side} dies with ${dies.how}`);
        this.#apis[dies.side].dead = dies.how;
      }
      const result = await this.#poll(this.#anyJob());
      if (isOver()) return;
      this.#pass(this.#waitAfter(result));
      if (this.#random.chance(0.2)) this.oracle.lookAtReport();
      if (this.#random.chance(this.traits.turns)) await this.#turn();
    }
  }

  /** As long as waits and late records may take, and so long that whole lists are read again. */
  async calm(): Promise<void> {
    const { course } = this;
    course.tell('all is well from here on');
    course.isTroubled = false;
    if (this.#sides.length < 2 && !this.oracle.model.isRetired) this.#configure(['old', 'new']);
    for (const api of Object.values(this.#apis))
      Object.assign(api, { troubled: false, outage: null });
    const { patienceMs } = this.traits;
    const waits = [1, 90, 1, 26 * 60, 1, 26 * 60, 1, 1].map((n) => n * minuteMs);
    for (const wait of [...waits, patienceMs + minuteMs, minuteMs]) {
      await this.#poll({ what: 'read', streams: this.#read() });
      if (this.oracle.findings.length > 0) return;
      for (let n = 0; n < 4; n += 1) {
        course.now += Math.floor(wait / 4);
        this.#tick();
      }
    }
    this.oracle.finish(this.#brake);
  }

  /** Streams that the config has. */
  #read(): readonly SideStream[] {
    return this.#sides.flatMap((side) => this.#streams[side]);
  }

  #anyJob(): Job {
    const all = this.#read();
    const some = all.filter(() => this.#random.chance(0.6));
    return { what: 'read', streams: this.#random.chance(0.4) || some.length === 0 ? all : some };
  }

  async #turn(): Promise<void> {
    if (this.#sides.length < 2) return;
    const isCutOver = this.oracle.model.phase === 'cut_over';
    const isOdd = this.#random.chance(0.1);
    const phase = isCutOver === isOdd ? 'cut_over' : 'shadow';
    const isForced = this.#random.chance(this.traits.forced);
    this.course.tell(`the operator moves it to ${phase}${isForced ? ' by force' : ''}`);
    this.oracle.turnedFrom = this.course.now;
    await this.#poll({ what: 'turn', phase, isForced });
  }

  async #poll(job: Job): Promise<PollResult | 'killed'> {
    if (this.#process === null) this.course.restart();
    if (this.#process !== null) this.#process.job = job;
    const result = await this.course.poll();
    if (result !== 'killed') this.#tick();
    return result;
  }

  #tick(): void {
    this.#process?.tick();
  }

  #pass(ms: number): void {
    const until = this.course.now + ms;
    for (let n = this.#random.below(3); n > 0; n -= 1) {
      this.course.now += this.#random.below((until - this.course.now) / 2);
      this.#grow();
      this.#tick();
    }
    this.course.now = until;
    this.#tick();
  }

  #waitAfter(result: PollResult | 'killed'): number {
    if (result === 'killed') return this.#random.pick([1_000, minuteMs, 3 * hourMs]);
    const { patienceMs } = this.traits;
    return this.#random.pick([
      ...[1_000, minuteMs, minuteMs, minuteMs, 5 * minuteMs, 5 * minuteMs, 20 * minuteMs],
      ...[hourMs, Math.floor(patienceMs / 2), patienceMs],
    ]);
  }

  #letFail(): void {
    for (const api of Object.values(this.#apis)) {
      if (!this.#random.chance(this.traits[api.side].outages)) continue;
      const until = this.course.now + this.#random.below(4 * hourMs);
      api.outage = { until, status: this.#random.pick([500, 401, 403, 404, 429]) };
      this.course.tell(`${api.side} answers ${api.outage.status} for a while`);
    }
  }

  #grow(): void {
    const before = this.#ledger.records.length;
    this.#ledger.grow(this.course.now);
    this.course.tell(`${this.#ledger.records.length - before} records come`);
  }

  /** The config is another from now on; the process restarts with it. */
  #configure(sides: readonly Side[]): void {
    this.course.tell(`the config has ${sides.map((side) => sourceOf[side]).join(' and ')}`);
    this.#sides = sides;
    this.course.restart();
  }

  get #brake(): Brake {
    return { isOn: this.#process?.store.pairs.all.some(({ brake }) => brake !== null) === true };
  }

  #start(steps: Steps): PairProcess {
    this.#process?.store.close();
    this.#steps = steps;
    const started = new PairProcess({
      ...{ dir: this.#dir, traits: this.traits, streams: this.#streams, sides: this.#sides },
      ...{ clock: this.course.clock, commit: steps.commit },
      fails: () => this.course.happens(this.traits.commitFails),
      sleep: () => unanswered(),
      changed: (change, held) => {
        if (change.what === 'settle') this.#settled();
        this.oracle.changed(change, held, this.#brake);
      },
    });
    this.#process = started;
    return started;
  }

  #settled(): void {
    const { model } = this.oracle;
    if (this.#sides.length > 1) model.begunAt ??= this.course.clock.now();
  }
}

let template: string | null = null;
let states = 0;

/** A directory with an empty state: a copy, since making one takes longer. */
function freshState(): string {
  if (template === null) {
    const made = mkdtempSync(join(process.env.SLUICE_TEST_RUN_DIR ?? roomyDir(), 'pairs-'));
    // A run of the tests removes its directory at the end; its processes end without this event.
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    new Store({ dir: join(made, 'empty'), sync: 'none', keepMs: 0 }).close();
    template = made;
  }
  states += 1;
  const dir = join(template, `state-${states}`);
  mkdirSync(dir, { mode: 0o700 });
  cpSync(join(template, 'empty'), dir, { recursive: true });
  return dir;
}
