// Replaces src/run/shard-child.ts in a simulated cluster: a worker process is another life, and messages
// between the two need time. Invariants: a stopped process receives its messages when it resumes, in order; a
// dead process sends nothing more.

import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import type { WorkerSelf } from '../../../src/run/shard-worker.ts';
import type { Course, Life } from './course.ts';
import { networks } from './kafka.ts';

/** The environment variable that names the process that starts another one. */
export const startedBy = 'SIMULATED_LIFE';
const messageMs = 1;

/** Starts a worker process; `starter` is the life that starts it. */
export const machines = new Map<string, () => Child>();
let running: Course | null = null;

/** Binds all machines to this course. */
export function runIn(course: Course): void {
  running = course;
}

/** As in the product. */
export function startChild(
  _args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ChildProcess {
  const child = machines.get(env[startedBy] ?? '')?.();
  if (child === undefined) throw new Error('nobody has made a machine for it');
  return child as unknown as ChildProcess;
}

/** As in the product. */
export function uptimeMs(): number {
  return running === null ? 0 : running.now - (running.current?.machine.asleepMs ?? 0);
}

/** A started process and the channel to it, as its starter sees them. */
export class Child extends EventEmitter {
  readonly life: Life;
  readonly pid = 1;
  connected = true;
  /** The same channel as the started process sees it. */
  readonly own: EventEmitter & WorkerSelf;
  readonly #course: Course;
  readonly #parent: Life;
  /** Messages that arrived before the first listener. */
  #pending: unknown[] = [];

  constructor(course: Course, parent: Life, life: Life) {
    super();
    this.#course = course;
    this.#parent = parent;
    this.life = life;
    this.own = Object.assign(new EventEmitter(), {
      send: (message: unknown) => {
        if (this.connected) this.#tell(parent, () => this.emit('message', message));
      },
      exit: (code: number) => this.end(code, null),
    });
    this.own.on('newListener', (event) => {
      if (event !== 'message') return;
      const pending = this.#pending;
      this.#pending = [];
      for (const message of pending) this.#tell(life, () => this.own.emit('message', message));
    });
  }

  send(message: unknown): void {
    this.#tell(this.life, () => {
      if (!this.own.emit('message', message)) this.#pending.push(message);
    });
  }

  kill(_signal: 'SIGKILL'): void {
    // The receiver waits until it resumes.
    this.end(null, 'SIGKILL');
  }

  disconnect(): void {
    this.connected = false;
    this.abandon();
  }

  /** The starter has ended. */
  abandon(): void {
    this.#tell(this.life, () => this.own.emit('disconnect'));
  }

  /** The process has ended, with an exit code or by a signal. */
  end(code: number | null, signal: string | null): void {
    if (!this.life.isAlive) return;
    this.life.isAlive = false;
    networks.delete(this.life.name);
    this.#course.tell(`${this.life.name} has ended with ${signal ?? code}`);
    this.#tell(this.#parent, () => {
      this.connected = false;
      this.emit('exit', code, signal);
    });
  }

  #tell(to: Life, say: () => void): void {
    this.#course.after(messageMs, to, say);
  }
}
