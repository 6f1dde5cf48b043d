// The spool as a process has it that sends to one sink of a shard and nothing else: pages come from
// the shard's log, and how far the sink has come goes to the shard's owner, who writes it into the
// state (far-sinks.ts). What must stay true: nothing is handed on that was numbered by an owner of
// whom this process has not heard yet, since its numbers stand for nothing that could be said.

import { join } from 'node:path';
import { PageTail } from '../cluster/log/page-tail.ts';
import type { LogSettings } from '../cluster/log/settings.ts';
import type { HeldWord, Sent } from '../cluster/sent.ts';
import type { Offset } from '../contracts/event.ts';
import type { Json, JsonObject } from '../contracts/json.ts';
import { type Numbering, presentEpoch, reachOf } from '../contracts/numbering.ts';
import type { Acknowledgement, HeldPage, SendSpool, SinkProgress } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { makePrivateDirectory } from '../hold/private-files.ts';
import { Reached } from '../hold/reached.ts';

/** What it is opened with. */
export interface SenderSpoolMeans {
  readonly sink: string;
  readonly kafka: LogSettings;
  /** Followed. */
  readonly sent: Sent;
  readonly held: HeldWord;
  /** The shard's directory. */
  readonly dir: string;
  readonly clock: Clock;
  readonly log: Log;
  /** How the sink stands now. */
  readonly facts: () => JsonObject;
}

/** Places are said so seldom; what was delivered since comes again only on another machine. */
const sayEveryMs = 500;

/** The pages of a shard for one sink. */
export class SenderSpool implements SendSpool {
  readonly numbering: Numbering;
  readonly #means: SenderSpoolMeans;
  readonly #reached: Reached;
  readonly #tail: PageTail;
  readonly #over = new AbortController();
  #progress: SinkProgress;
  #saidAt = Number.NEGATIVE_INFINITY;
  #said = '';
  /** Resolves once the owner is another one, or this is closed. */
  readonly ended: Promise<void>;

  constructor(means: SenderSpoolMeans) {
    const { sink, held, sent, kafka, clock, log } = means;
    const dir = join(means.dir, `sink-${sink}`);
    makePrivateDirectory(dir);
    this.#means = means;
    this.numbering = held.numbering;
    this.#reached = new Reached(dir, held.numbering, [sink]);
    this.#progress = this.#known();
    // What an owner has given out before it held the first page is known once that page is.
    const isBelieved = async () => {
      await sent.caughtUp();
      return sent.held === held;
    };
    this.#tail = new PageTail(kafka, this.#progress.position, { clock, log, isBelieved });
    const replaced = new Promise<void>((resolve) => {
      const unlisten = sent.listen(() => {
        if (sent.held !== held) resolve();
      });
      this.#over.signal.addEventListener('abort', unlisten, { once: true });
    });
    this.ended = Promise.race([this.#tail.follow(), replaced]);
  }

  get gauge() {
    const { oldest, end, bytes } = this.#tail;
    return { oldest, end, bytes };
  }

  async read(from: Offset, bytesMax: number): Promise<readonly HeldPage[]> {
    return this.#tail.read(from, bytesMax);
  }

  async arrival(from: Offset, signal: AbortSignal): Promise<void> {
    await this.#tail.arrival(from, signal);
  }

  async progress(): Promise<SinkProgress> {
    return this.#progress;
  }

  reached(sink: string, position: Offset): void {
    this.#reached.note(sink, position);
  }

  /** Resolves once Kafka has it, from where the owner takes it. */
  async acknowledge(sink: string, step: Acknowledgement): Promise<void> {
    const { sent, clock } = this.#means;
    const { position, mark = this.#progress.mark, deadLetters = [] } = step;
    if (deadLetters.length === 0) {
      const pauseMs = this.#saidAt + sayEveryMs - clock.monotonic();
      if (pauseMs > 0) await clock.sleep(pauseMs, this.#over.signal).catch(() => undefined);
    }
    for (const { uid, offset, reason } of deadLetters)
      await sent.refuse(sink, { uid, offset, reason });
    this.#progress = { position: Math.max(position, this.#progress.position), mark };
    await this.say();
    this.#tail.letGo(this.#progress.position);
  }

  /** Says how the sink stands, where that has changed. */
  async say(): Promise<void> {
    const { sink, sent, clock, facts } = this.#means;
    const { position: next, mark } = this.#progress;
    const { spool } = this.numbering;
    const place = { spool, epoch: presentEpoch(this.numbering), next };
    const word = { place, mark, facts: facts() };
    const text = JSON.stringify(word);
    if (text === this.#said) return;
    this.#saidAt = clock.monotonic();
    await sent.say(sink, word);
    this.#said = text;
  }

  async append(): Promise<number> {
    throw new Error('a process that only sends holds nothing');
  }

  /** Nothing is waited for any more. */
  hurry(): void {
    this.#over.abort(new Error('the spool closes'));
  }

  close(): void {
    this.hurry();
    this.#tail.close();
    this.#reached.close();
  }

  /** The furthest of what is known of it here, by its owner and by whoever has sent before. */
  #known(): SinkProgress {
    const { sink, held, sent } = this.#means;
    const owned = held.sinks[sink] ?? { position: 0, mark: null };
    const word = sent.sink(sink);
    const said = word === null ? 0 : reachOf(word.place, held.numbering).position;
    const mark: Json = word !== null && said >= owned.position ? word.mark : owned.mark;
    return { position: Math.max(owned.position, said, this.#reached.at(sink)), mark };
  }
}
