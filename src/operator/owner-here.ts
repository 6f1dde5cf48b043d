// A process of this machine has the state in Kafka. Its directory is only a cache: an answer is there before Kafka has the
// change, and a killed process takes a withdrawal with it. So requests that change the state go through the control topic, as
// from other machines. Invariants: a change that was reported as done survives the process; each request is carried out once.

import type { Config } from '../config/index.ts';
import type { JsonObject } from '../contracts/index.ts';
import type { OperatorRequest } from '../hold/index.ts';
import type { Adapter, Stored } from './adapter.ts';
import { type KafkaState, RemoteProcess } from './remote-process.ts';
import type { RunningProcess } from './running-process.ts';

/** Reads the cache beside the process, and leaves requests in the control topic. */
export class OwnerHere implements Adapter {
  readonly holder: string;
  readonly #here: RunningProcess;
  readonly #remote: RemoteProcess;

  constructor(config: Config, kafka: KafkaState, here: RunningProcess) {
    this.holder = here.holder;
    this.#here = here;
    this.#remote = new RemoteProcess(config, kafka, here.holder);
  }

  async look<T>(read: (stored: Stored) => Promise<T> | T): Promise<T> {
    return await this.#here.look(read);
  }

  async carryOut(name: string, wish: OperatorRequest): Promise<JsonObject | null> {
    // A retry changes nothing in the state, and is of use while Kafka does not answer.
    const adapter = wish.what === 'retry' ? this.#here : this.#remote;
    return await adapter.carryOut(name, wish);
  }
}
