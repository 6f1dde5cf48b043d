// Requests of operators to the processes of a state in Kafka, from any machine: records of the compacted topic
// `<prefix>.control`, which has one partition. The keys:
// - `["drain", INSTANCE]`: this process must own no shard
// - `["command", ID]` and `["answer", ID]`: a request and its response, until the client has read the response
// - `["shards", "count"]`: the number of shards, if there are several
// - `["import", "state"]`: an import is not complete
// - `["deployment", "state"]`: the deployment of the state; `["claim", NAME]`: one that requests the state (deployment.ts)
// - `["home", SOURCE]`: the shard that reads a source and has its state
// Invariant: a command and its answer have their own keys, so a command that a broker has stored twice stays answered.

import { z } from 'zod';
import { type Clock, isObject, type JsonObject } from '../contracts/index.ts';
import { type OperatorRequest, operatorRequestOf } from '../hold/index.ts';
import { ControlLog } from './board.ts';
import { type Deployment, readDeployment } from './deployment.ts';
import type { StateLogSettings } from './log/settings.ts';

/** A request that one of the processes carries out. */
export interface ControlCommand {
  readonly id: string;
  /** The stream, sink or source of the request. */
  readonly name: string;
  readonly wish: OperatorRequest;
  /** The owner of this shard carries the request out. */
  readonly shard: number;
  /** Time of the request by the clock of the client; epoch milliseconds. */
  readonly at: number;
}

const commandShape = z.object({ name: z.string(), at: z.number(), shard: z.number().default(0) });

/** The topic as one process has read it. */
export class Control extends ControlLog {
  readonly #drained = new Set<string>();
  readonly #commands = new Map<string, ControlCommand>();
  readonly #answers = new Map<string, JsonObject>();
  #shards: number | null = null;
  #hasOldGroups = false;
  #isImporting = false;
  #deployment: Deployment | null = null;
  readonly #homes = new Map<string, number>();
  /** In the order of the topic. */
  readonly #claims = new Map<string, Deployment>();

  constructor(settings: StateLogSettings, clock: Clock) {
    super(settings, clock, { topic: `${settings.prefix}.control`, partition: 0 });
  }

  /** The instances that must own no shard. */
  get drained(): ReadonlySet<string> {
    return this.#drained;
  }

  /** Commands by id, also those with an answer. */
  get commands(): ReadonlyMap<string, ControlCommand> {
    return this.#commands;
  }

  get answers(): ReadonlyMap<string, JsonObject> {
    return this.#answers;
  }

  /** The number of shards, as stored by the first process; null: one shard, or not stored yet. */
  get shards(): number | null {
    return this.#shards;
  }

  /** Whether an import is not complete. */
  get isImporting(): boolean {
    return this.#isImporting;
  }

  /** The deployment of the state; null: no process has stored it. */
  get deployment(): Deployment | null {
    return this.#deployment;
  }

  /** Deployments that request the state, oldest first. */
  get claims(): readonly Deployment[] {
    return [...this.#claims.values()];
  }

  /** By source, the shard that reads it. */
  get homes(): ReadonlyMap<string, number> {
    return this.#homes;
  }

  /** Stores which shard reads each of these sources, for all or for none. */
  async settle(homes: ReadonlyMap<string, number>): Promise<void> {
    await this.writeAll(Array.from(homes, ([source, shard]) => [['home', source], { shard }]));
    for (const [source, shard] of homes) this.#homes.set(source, shard);
  }

  async claim({ name, upstreams }: Deployment): Promise<void> {
    await this.write(['claim', name], { upstreams });
  }

  async unclaim(name: string): Promise<void> {
    await this.write(['claim', name], null);
  }

  /** Stores the deployment of the state. */
  async belongsTo({ name, upstreams }: Deployment): Promise<void> {
    await this.write(['deployment', 'state'], { name, upstreams });
    this.#deployment = { name, upstreams };
  }

  async drain(instance: string, at: number): Promise<void> {
    await this.write(['drain', instance], { at });
  }

  async undrain(instance: string): Promise<void> {
    await this.write(['drain', instance], null);
  }

  /** Whether processes of an older version may work on the state: each of their shards has its own group. */
  get hasOldGroups(): boolean {
    return this.#hasOldGroups;
  }

  /**
   * Stores the number of shards of the state, for good. An older version reads `count`, and refuses a number that is not the one
   * of its config with `config_invalid`. `isClosing`: a process of an older version that has started before may still join.
   */
  async divide(shards: number, { isClosing = false } = {}): Promise<void> {
    await this.write(['shards', 'count'], {
      ...{ count: 0, of: shards },
      ...(isClosing && { closing: true }),
    });
    this.#shards = shards;
    this.#hasOldGroups = isClosing;
  }

  /** Stores that an import has started, or is complete. Between the two no shard runs. */
  async importing(isImporting: boolean): Promise<void> {
    await this.write(['import', 'state'], isImporting ? {} : null);
    this.#isImporting = isImporting;
  }

  async ask({ id, ...command }: ControlCommand): Promise<void> {
    await this.write(['command', id], { ...command, wish: { ...command.wish } });
  }

  async answer(id: string, answer: JsonObject): Promise<void> {
    await this.write(['answer', id], answer);
    this.#answers.set(id, answer);
  }

  /** Deletes a command and its answer: the client has the answer, or waits no longer. */
  async withdraw(id: string): Promise<void> {
    await this.write(['command', id], null);
    if (this.#answers.has(id)) await this.write(['answer', id], null);
    this.#commands.delete(id);
    this.#answers.delete(id);
  }

  protected put([kind, name]: readonly (string | number)[], said: JsonObject | null): void {
    if (typeof name !== 'string') return;
    if (kind === 'drain') {
      if (said === null) this.#drained.delete(name);
      else this.#drained.add(name);
    } else if (kind === 'answer') {
      if (said === null) this.#answers.delete(name);
      else this.#answers.set(name, said);
    } else if (kind === 'shards') {
      const count = said?.of ?? said?.count;
      this.#shards = typeof count === 'number' ? count : null;
      this.#hasOldGroups =
        this.#shards !== null && (said?.of === undefined || said.closing === true);
    } else if (kind === 'import') {
      this.#isImporting = said !== null;
    } else if (kind === 'home') {
      const shard = said?.shard;
      if (typeof shard === 'number') this.#homes.set(name, shard);
      else this.#homes.delete(name);
    } else if (kind === 'deployment') {
      this.#deployment = said && readDeployment(said);
    } else if (kind === 'claim') {
      const claim = said && readDeployment({ ...said, name });
      if (claim === null) this.#claims.delete(name);
      else this.#claims.set(name, claim);
    } else if (kind === 'command') {
      const command = said && commandOf(name, said);
      if (command !== null) this.#commands.set(name, command);
      else if (said === null) this.#commands.delete(name);
    }
  }
}

function commandOf(id: string, said: JsonObject): ControlCommand | null {
  const shaped = commandShape.safeParse(said).data;
  const wish = operatorRequestOf(isObject(said.wish) ? said.wish : null);
  return shaped === undefined || wish === null ? null : { id, ...shaped, wish };
}
