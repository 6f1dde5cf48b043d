// Sinks of a shard that other processes send to (`own_process`), as the shard's owner has them: what
// those say of them is written into the state, as if it were said here. What must stay true: a place
// is taken only behind the letters that were said before it, and each letter once.

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { LogSettings } from '../cluster/log/settings.ts';
import type { LetterWord, Sent } from '../cluster/sent.ts';
import { asExportError, ExportError } from '../contracts/errors.ts';
import { reachOf } from '../contracts/numbering.ts';
import type { DeadLetter, SinkProgress, Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { lookInto, Store } from '../hold/store.ts';
import { PageDecoder } from '../send/held-event.ts';
import { normalisersOf } from '../send/normalisers.ts';
import type { SenderState } from '../send/sender.ts';

/** What they are kept with. */
export interface FarSinksMeans {
  readonly spool: Pick<Spool, 'numbering' | 'progress' | 'acknowledge' | 'read'>;
  readonly sent: Sent;
  /** Of the state. */
  readonly dir: string;
  readonly clock: Clock;
  readonly log: Log;
}

const factsShape = z.object({
  state: z.enum(['idle', 'sending', 'retrying', 'refused', 'stopped']),
  delivered: z.number(),
  deadLetters: z.number(),
  retries: z.number(),
  error: z.object({ code: z.string(), message: z.string(), next: z.string() }).nullable(),
  notice: z.object({ what: z.string(), next: z.string() }).nullable(),
  suspects: z
    .object({
      events: z.number(),
      refused: z.number(),
      stuck: z.boolean(),
      first: z.array(z.object({ uid: z.string(), stream: z.string(), reason: z.string() })),
    })
    .nullable()
    .catch(null),
});
const noFacts: z.output<typeof factsShape> = {
  ...{ state: 'idle', delivered: 0, deadLetters: 0, retries: 0, error: null, notice: null },
  suspects: null,
};

/** Takes into a state at rest what was said of its sinks and no owner has taken. */
export async function takeSent(
  kafka: LogSettings,
  { dir, clock, log }: Pick<FarSinksMeans, 'dir' | 'clock' | 'log'>,
): Promise<void> {
  // Its client takes long to load.
  const { Sent } = await import('../cluster/sent.ts');
  const sent = new Sent(kafka, clock);
  const store = new Store({ dir, sync: 'none', keepMs: 0 });
  try {
    await sent.readAll();
    const spool: FarSinksMeans['spool'] = {
      numbering: store.numbering,
      progress: async (sink) => store.progress(sink),
      acknowledge: async (sink, step) =>
        store.transaction(() => store.acknowledge(sink, step, clock.now())),
      read: async (from, bytesMax) => store.read(from, bytesMax),
    };
    await (await FarSinks.open({ spool, sent, dir, clock, log })).close();
  } finally {
    store.close();
    await sent.close();
  }
}

/** All of a shard's. */
export class FarSinks {
  readonly #means: FarSinksMeans;
  readonly #decoder = new PageDecoder(normalisersOf([]));
  #names: ReadonlySet<string> = new Set();
  /** As the state has them. */
  readonly #known = new Map<string, SinkProgress>();
  /** By sink, offset and uid: what is a dead letter already. */
  readonly #letters: Set<string>;
  #taking: Promise<void> = Promise.resolve();
  readonly #unlisten: () => void;

  private constructor(means: FarSinksMeans) {
    this.#means = means;
    const held = lookInto(means.dir, null, (store) => store.letters.list(null)) ?? [];
    this.#letters = new Set(held.map((letter) => keyOf(letter.sink, letter)));
    this.#unlisten = means.sent.listen(() => this.#take());
  }

  /** Takes what was said before, and from then on what is. */
  static async open(means: FarSinksMeans): Promise<FarSinks> {
    const far = new FarSinks(means);
    await far.#takeAll();
    return far;
  }

  /**
   * Tells those who send to these sinks, and to no other, what they go on from. Of what an owner gave
   * out that is gone nobody may go on, so where there was one, it is told of none as well.
   */
  async follow(names: readonly string[]): Promise<void> {
    const { spool, sent } = this.#means;
    this.#names = new Set(names);
    if (names.length === 0 && sent.held === null) return;
    const sinks: Record<string, SinkProgress> = {};
    for (const name of names) {
      sinks[name] = await spool.progress(name);
      this.#known.set(name, sinks[name]);
    }
    await sent.giveOut({ numbering: spool.numbering, sinks });
  }

  get state(): readonly (SenderState & { readonly name: string })[] {
    return Array.from(this.#names, (name) => {
      const word = this.#means.sent.sink(name);
      const { error, ...facts } = factsShape.safeParse(word?.facts).data ?? noFacts;
      const position = this.#known.get(name)?.position ?? 0;
      return {
        ...{ name, ...facts, position, sent: position, dueInMs: null },
        ...{ setAside: [], waitsAside: false },
        error: error && told(error),
      };
    });
  }

  /** Takes what was said by now. */
  async close(): Promise<void> {
    this.#unlisten();
    await this.#taking;
  }

  #take(): void {
    // What is not taken now is when the log was read again.
    this.#taking = this.#taking
      .then(() => this.#takeAll())
      .catch((error) => {
        const { message } = asExportError(error, 'taking what was sent');
        this.#means.log.warn('what other processes have sent is not taken yet', { error: message });
      });
  }

  async #takeAll(): Promise<void> {
    for (const sink of this.#means.sent.names) await this.#takeOf(sink);
  }

  async #takeOf(sink: string): Promise<void> {
    const { spool, sent } = this.#means;
    const word = sent.sink(sink);
    const refused = sent.letters(sink);
    const next = word === null ? 0 : reachOf(word.place, spool.numbering).position;
    const known = this.#known.get(sink) ?? (await spool.progress(sink));
    this.#known.set(sink, known);
    const position = Math.max(next, known.position);
    const mark = word !== null && next === position ? word.mark : known.mark;
    const isKnown = position === known.position && isDeepStrictEqual(mark, known.mark);
    if (isKnown && refused.length === 0) return;
    const letters = refused.filter((letter) => !this.#letters.has(keyOf(sink, letter)));
    const deadLetters = await Promise.all(letters.map((letter) => this.#whole(sink, letter)));
    await spool.acknowledge(sink, {
      ...{ position, mark },
      deadLetters: deadLetters.filter((letter) => letter !== null),
    });
    this.#known.set(sink, { position, mark });
    for (const letter of letters) this.#letters.add(keyOf(sink, letter));
    // Where that fails it is known by the state that it was taken.
    for (const letter of refused) await sent.took(sink, letter).catch(() => undefined);
  }

  /** Its record and where it is from stand in its page, which is held until its sink has passed it. */
  async #whole(sink: string, { offset, uid, reason }: LetterWord): Promise<DeadLetter | null> {
    const { spool, log } = this.#means;
    const [page] = await spool.read(offset, 1);
    const event = page && this.#decoder.decode(page).events[offset - page.first];
    if (event?.uid !== uid) {
      log.warn('a sink is said to have refused what is not held', { sink, offset, uid, reason });
      return null;
    }
    const record = new Uint8Array(event.raw);
    return { uid, offset, reason, context: event.context, record };
  }
}

function keyOf(sink: string, { offset, uid }: Pick<LetterWord, 'offset' | 'uid'>): string {
  return `${sink} ${offset} ${uid}`;
}

function told({ code, message, next }: { code: string; message: string; next: string }) {
  const known = code === 'sink_refused' || code === 'sink_throttled' ? code : 'sink_unreachable';
  return new ExportError(known, message, { next });
}
