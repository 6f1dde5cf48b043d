// The newest events in the spool, for the live tail of the status page. Its own reader moves no position and retains no
// page; events are normalised, filtered and formatted for it alone. Invariant: one look takes a bounded time at any
// rate and with any filter, since it blocks everything else. So the newest events come first, and events that do not
// fit into the time are counted as missed.

import type { Config } from '../config/index.ts';
import type { Clock, Event, HeldPage, Offset, Spool } from '../contracts/index.ts';
import { normalisersOf, PageDecoder } from '../send/index.ts';
import type { EventTap, TailLine, TailTake, TailView, TailWish } from '../watch/running-status.ts';
import type { WholePlan } from './plan.ts';
import { type Form, formsOf, type Judge, judgeOf, openForm } from './tap-forms.ts';

/** The dependencies of a tap. */
export interface TapDeps {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly spool: Spool;
  readonly clock: Clock;
}

/** The most events and bytes of one look. */
const eventsMax = 1_000;
const bytesMax = 2 * 1024 * 1024;
/** More than a person reads is not shown. */
const linesMax = 50;
const lineLengthMax = 16_384;
const lookMsMax = 15;

/** Opens the tap. It costs nothing until somebody looks. */
export function eventTap({ config, plan, spool, clock }: TapDeps): EventTap {
  const forms = formsOf(config, plan);
  return {
    forms: [...forms.keys()],
    open(wish) {
      const form = openForm(forms, wish.form);
      const judge = judgeOf(wish.where);
      const decoder = new PageDecoder(normalisersOf(plan.sources));
      return new SpoolView({ spool, clock, decoder, form, judge, wish });
    },
  };
}

interface ViewDeps {
  readonly spool: Spool;
  readonly clock: Clock;
  readonly decoder: PageDecoder;
  readonly form: Form;
  readonly judge: Judge;
  readonly wish: TailWish;
}

/** The result of one look. */
interface Look {
  /** Newest first. */
  readonly lines: TailLine[];
  looked: number;
  missed: number;
  unjudged: number;
}

class SpoolView implements TailView {
  readonly #deps: ViewDeps;
  readonly #stream: string;
  readonly #text: string;
  #at: Offset;
  #isFirst = true;

  constructor(deps: ViewDeps) {
    const { oldest, end } = deps.spool.gauge;
    this.#deps = deps;
    this.#stream = deps.wish.stream.toLowerCase();
    this.#text = deps.wish.text.toLowerCase();
    this.#at = Math.max(oldest, end - eventsMax);
  }

  async take(signal: AbortSignal): Promise<TailTake> {
    const { spool, clock } = this.#deps;
    if (!this.#isFirst) await spool.arrival(this.#at, signal);
    this.#isFirst = false;
    const from = Math.max(this.#at, spool.gauge.end - eventsMax);
    const { pages, upTo } = await this.#pages(from);
    const look: Look = { lines: [], looked: 0, missed: upTo - this.#at, unjudged: 0 };
    this.#at = upTo;
    const deadline = clock.monotonic() + lookMsMax;
    for (const page of pages.toReversed()) this.#lookAt(page, from, { look, deadline });
    return { ...look, lines: look.lines.toReversed() };
  }

  /** The pages from an offset on, and their end; pages that every sink has may be deleted. */
  async #pages(from: Offset): Promise<{ pages: readonly HeldPage[]; upTo: Offset }> {
    const { spool } = this.#deps;
    const { end } = spool.gauge;
    const pages: HeldPage[] = [];
    let upTo = from;
    for (let bytes = 0; upTo < end && bytes < bytesMax; ) {
      const read = await spool.read(upTo, bytesMax - bytes);
      if (read.length === 0) return { pages, upTo: end };
      for (const page of read) {
        pages.push(page);
        bytes += page.body.length;
        upTo = page.first + page.count;
      }
    }
    return { pages, upTo };
  }

  #lookAt(page: HeldPage, from: Offset, { look, deadline }: { look: Look; deadline: number }) {
    const { decoder, clock } = this.#deps;
    const first = Math.max(from, page.first);
    const count = page.first + page.count - first;
    if (page.context.kind === 'answer') {
      look.missed -= count;
      return;
    }
    // A dead letter that is sent again is no new event.
    const isSought =
      page.onlySink === undefined && page.context.stream.toLowerCase().includes(this.#stream);
    let looked = isSought ? 0 : count;
    if (isSought && clock.monotonic() < deadline) {
      const { events } = decoder.decode(page);
      while (
        looked < count &&
        look.lines.length < linesMax &&
        (looked === 0 || clock.monotonic() < deadline)
      ) {
        looked += 1;
        const event = events[page.count - looked];
        if (event !== undefined) this.#show(event, look);
      }
    }
    look.looked += looked;
    look.missed -= looked;
  }

  #show(event: Event, look: Look): void {
    const { form, judge } = this.#deps;
    const selection = form.selectionFor(event.source);
    const shown = selection?.select(event) ?? null;
    if (shown === null) return;
    // A filter on a masked value would answer questions about it.
    const verdict = judge(selection?.masks === true ? shown : event);
    if (verdict === 'unjudged') look.unjudged += 1;
    if (verdict !== 'passes') return;
    const line = form.format.encode(shown);
    const text = typeof line === 'string' ? line : Buffer.from(line).toString('utf8');
    if (this.#text !== '' && !text.toLowerCase().includes(this.#text)) return;
    look.lines.push({
      stream: event.stream,
      severity: event.ocsf.severity_id,
      text: text.length > lineLengthMax ? `${text.slice(0, lineLengthMax).toWellFormed()}…` : text,
    });
  }
}
