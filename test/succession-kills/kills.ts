// A move from one API to the other, of as many records as one likes, while the process that works on it is killed with SIGKILL:
// in each phase, and while a cutover or a rollback is carried out. `npm run succession-kills` runs it for long,
// test/succession/kills-on-kafka.test.ts for a short while. At the end the file and both Kafka topics have to hold each record
// once, and the syslog receiver has to have seen each.

import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '../support/temp.ts';
import { Stage, type StageOptions, type StateKind } from './stage.ts';

/** What is done. */
export interface KillsOptions {
  readonly state: StateKind;
  readonly kills: number;
  /** At least so many; a few more stand alone on one side. */
  readonly records: number;
  /** 0 up to 1, as Math.random. */
  readonly random: () => number;
  readonly brokers: readonly string[];
  readonly dir: string;
  readonly tell?: (line: string) => void;
}

/** Where a process is killed. */
const moments = ['shadow', 'ready', 'cutover', 'cut_over', 'rollback'] as const;
type Moment = (typeof moments)[number];

/** The result. */
export interface KillsResult {
  readonly records: number;
  /** By moment. */
  readonly kills: Readonly<Record<Moment, number>>;
  /** Of the kills in a cutover or rollback, those before its answer and after; and how often the change was found done. */
  readonly turned: { readonly before: number; readonly after: number; readonly done: number };
  /** By receiver, marks. */
  readonly lost: Readonly<Record<string, readonly string[]>>;
  readonly repeated: Readonly<Record<string, readonly string[]>>;
  /** Why records are held back; null: they are not. */
  readonly brake: unknown;
}

const [pageMin, pagesMax] = [20, 50];
const succeeds = { patience: '2s', overlap: '3s' };

/** Kills so many times, lets all be delivered, and counts. */
export async function runKills(options: KillsOptions): Promise<KillsResult> {
  const { state, brokers, dir, records, kills: count, random, tell } = options;
  // A whole walk stays as short as it is in a short run.
  const pageMax = Math.max(pageMin, Math.ceil(records / pagesMax));
  const of: StageOptions = { state, brokers, dir, succeeds, pageMax };
  const stage = await Stage.open(of);
  const killing = new Killing(stage, random);
  const kills = { shadow: 0, ready: 0, cutover: 0, cut_over: 0, rollback: 0 };
  const share = Math.ceil(records / count);
  for (let kill = 0; kill < count; kill += 1) {
    const moment = moments[kill % moments.length] ?? 'shadow';
    await killing.at(moment, share);
    kills[moment] += 1;
    tell?.(`killed ${kill + 1} times, in ${moment}; ${stage.pair.entries.length} records`);
  }
  killing.showAll();
  stage.startAll();
  const missing = () => stage.pair.count(stage.lines.join('\n')).lost;
  await waitUntil(() => missing().length === 0, {
    what: () => `all records in the file; ${missing().length} are missing, such as ${missing()[0]}`,
    everyMs: 200,
  });
  const report = await stage.report();
  // What a topic or the receiver lacks now they get while the processes end in order.
  await stage.end();
  const counted = [...(await stage.delivered())];
  const { turned } = killing;
  return {
    ...{ records: stage.pair.entries.length, kills, turned, brake: report.brake },
    lost: Object.fromEntries(counted.map(([name, { lost }]) => [name, lost])),
    repeated: Object.fromEntries(counted.map(([name, { repeated }]) => [name, repeated])),
  };
}

/** The faults of the result; empty: none. */
export function findingsOf({ lost, repeated, brake }: KillsResult): readonly string[] {
  const reported = (what: string, of: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(of).flatMap(([name, marks]) =>
      marks.length === 0
        ? []
        : [`${name} ${what} ${marks.length}: ${marks.slice(0, 8).join(', ')}`],
    );
  const once = Object.fromEntries(Object.entries(repeated).filter(([name]) => name !== 'syslog'));
  return [
    ...reported('lacks', lost),
    ...reported('repeats', once),
    ...(brake === null ? [] : [`records are held back: ${JSON.stringify(brake)}`]),
  ];
}

class Killing {
  readonly turned = { before: 0, after: 0, done: 0 };
  readonly #stage: Stage;
  readonly #random: () => number;
  #late: (() => void)[] = [];
  #isBegun = false;
  /** The successor's first walk has ended. */
  #isWalked = false;

  constructor(stage: Stage, random: () => number) {
    this.#stage = stage;
    this.#random = random;
  }

  /** Adds a share of the records and kills at a moment of that kind. */
  async at(moment: Moment, share: number): Promise<void> {
    const stage = this.#stage;
    // The first walk begins `overlap` before the pairing and leaves out older records for good. The first kill may come
    // within it; what is to be matched arrives after it.
    if (this.#isBegun) {
      stage.startAll();
      await waitUntil(() => stage.isWalked(), { what: 'the first walk to end', everyMs: 300 });
      this.#isWalked = true;
    }
    this.#isBegun = true;
    this.showAll();
    this.#grow(Math.ceil(share / 2));
    stage.startAll();
    await this.#requests(1);
    if (moment === 'cut_over') await this.#be('cut_over');
    if (moment === 'shadow' || moment === 'ready') await this.#be('shadow');
    if (moment === 'ready') await this.#ready();
    else this.#alone();
    this.#grow(Math.floor(share / 2));
    if (moment === 'cutover' || moment === 'rollback') await this.#within(moment);
    else {
      await this.#requests(2 + this.#below(25));
      await stage.killOwner(this.#which());
    }
  }

  /** Has the other side show what it has not shown yet. */
  showAll(): void {
    for (const show of this.#late) show();
    this.#late = [];
  }

  /** Kills while the change is carried out, and checks the result afterwards. */
  async #within(turn: 'cutover' | 'rollback'): Promise<void> {
    const before = turn === 'cutover' ? 'shadow' : 'cut_over';
    await this.#be(before);
    let isAnswered = false;
    const given = this.#turn(turn).finally(() => {
      isAnswered = true;
    });
    // Its last request is right before the transaction.
    await Promise.race([this.#requests(1 + this.#below(4)), given]);
    if (this.#below(2) === 0) await delay(this.#below(60));
    this.turned[isAnswered ? 'after' : 'before'] += 1;
    await this.#stage.killOwner(this.#which());
    this.#stage.startAll();
    const answer = await given.catch(() => null);
    await this.#requests(4);
    const { phase } = await this.#stage.report();
    const isDone = (phase === 'cut_over') === (turn === 'cutover');
    if (isDone) this.turned.done += 1;
    // A command that no process carried out in time is withdrawn, and says so.
    else if (answer?.exitCode === 0) throw new Error(`${turn} was answered, and is not done`);
  }

  /** Cuts over or rolls back until the pair is so. */
  async #be(phase: 'shadow' | 'cut_over'): Promise<void> {
    let seen = '';
    const isSo = async () => {
      seen = String((await this.#stage.report()).phase);
      if ((seen === 'cut_over') === (phase === 'cut_over') && seen !== 'null') return true;
      const { stderr } = await this.#turn(phase === 'shadow' ? 'rollback' : 'cutover');
      seen += ` ${stderr}`;
      return false;
    };
    await waitUntil(isSo, { what: () => `the pair to be ${phase}: ${seen}`, everyMs: 300 });
  }

  async #ready(): Promise<void> {
    let seen: unknown;
    const isSo = async () => {
      seen = await this.#stage.report();
      return (seen as { readonly phase: string }).phase === 'ready';
    };
    await waitUntil(isSo, { what: () => `ready: ${JSON.stringify(seen)}`, everyMs: 300 });
  }

  #turn(turn: 'cutover' | 'rollback') {
    return this.#stage.turn(turn, ...(turn === 'cutover' ? ['--force'] : []));
  }

  async #requests(more: number): Promise<void> {
    const stage = this.#stage;
    const until = stage.requests + more;
    const logs = () => stage.logs.slice(-12).join('\n');
    const what = () => `${more} requests more, ${stage.requests} of ${until}:\n${logs()}`;
    await waitUntil(() => stage.requests >= until, { what, everyMs: 1 });
  }

  #grow(count: number): void {
    const { pair } = this.#stage;
    pair.addMany(count);
    const late = pair.only('new').add({ timeMs: Date.now() - 3_000_000 });
    const other = pair.only('old').add({ timeMs: Date.now() - 2_000_000 });
    this.#late.push(
      () => pair.show(late, 'old'),
      () => pair.show(other, 'new'),
    );
  }

  /** Records that only one side ever shows. */
  #alone(): void {
    const { pair } = this.#stage;
    pair.only('old').addMany(this.#below(3));
    // After the first walk no record is left out because of its time.
    pair.only('new').addMany(this.#below(3), this.#isWalked ? {} : { timeMs: Date.now() });
  }

  #which(): 'shard' | 'whole' {
    return this.#below(3) === 0 ? 'shard' : 'whole';
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }
}
