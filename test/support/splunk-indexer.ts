// One Splunk indexer with an HTTP Event Collector, as in its documents (help.splunk.com, "HTTP Event Collector"): its
// responses to a post, to a poll and to a health check, and the later results of a search. An accepted event is in
// memory only until it is written; the acknowledgement means written, and a kill loses unwritten events. Invariant: an
// ackId counts from 0 for each channel, `true` is sent once, and `false` proves nothing: waiting, lost and unknown look
// the same.
import type { HttpAnswer, ReceivedRequest } from './http-receiver.ts';
import {
  type IndexedEvent,
  isObject,
  parsed,
  type Reading,
  Refused,
  readEvents,
  type SplunkToken,
} from './splunk-events.ts';

export interface IndexerOptions extends Omit<Reading, 'indexer'> {
  readonly tokens: readonly SplunkToken[];
  /** Requests of one channel that may wait for their acknowledgement; then code 9. */
  readonly pendingMax: number;
  /** `max_content_length`: bytes of a request, undone from gzip; above, 413. */
  readonly contentLengthMax: number;
  /** How often a request is polled in vain before it counts as written; each other request is written at once. */
  readonly pollsInVain: number;
  /** The response to a poll of a channel that this indexer does not know. */
  readonly unknownChannel: 'false' | 'refused';
}

interface Waiting {
  readonly events: readonly IndexedEvent[];
  polls: number;
}

interface Channel {
  nextAckId: number;
  /** By ackId: not written yet. */
  readonly waiting: Map<number, Waiting>;
  /** Written, and not reported yet. */
  readonly written: Set<number>;
}

/** Codes that concern the whole indexer, with their status and text. */
const conditions = {
  9: [503, 'Server is busy'],
  18: [503, 'HEC is unhealthy, queues are full'],
  19: [503, 'HEC is unhealthy, ack service unavailable'],
  20: [503, 'HEC is unhealthy, queues are full, ack service unavailable'],
  23: [503, 'Server is shutting down'],
} as const;
export type Condition = keyof typeof conditions;

const guid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** An indexer; the balancer before it is in `splunk-hec.ts`. */
export class SplunkIndexer {
  readonly number: number;
  /** False while it is killed. */
  isUp = true;
  readonly #options: IndexerOptions;
  readonly #write: (events: readonly IndexedEvent[]) => void;
  #channels = new Map<string, Channel>();
  #condition: Condition | null = null;
  #isHeld = false;
  #losesNext = false;

  constructor(
    number: number,
    options: IndexerOptions,
    write: (events: readonly IndexedEvent[]) => void,
  ) {
    this.number = number;
    this.#options = options;
    this.#write = write;
  }

  /** From now on answers every post, and where it says so every poll, with this code; null: as usual. */
  say(condition: Condition | null): void {
    this.#condition = condition;
  }

  /** Takes events and writes none, so that it acknowledges nothing; `release` writes them all. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    for (const { waiting, written } of this.#channels.values()) {
      for (const [id, { events }] of waiting) {
        this.#write(events);
        written.add(id);
      }
      waiting.clear();
    }
  }

  /** Takes the next post of a token that acknowledges, gives its ackId, and never writes it. */
  loseNext(): void {
    this.#losesNext = true;
  }

  /** How many requests were taken and not written. */
  get waiting(): number {
    return [...this.#channels.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  }

  /** Ends as by kill -9: what was not written is lost, and channels and ackIds are forgotten. */
  kill(): void {
    this.isUp = false;
    this.forgetChannels();
  }

  restart(): void {
    this.isUp = true;
  }

  /** As `ack_idle_cleanup` does, or a crash: its content is never acknowledged. */
  forgetChannels(): void {
    this.#channels = new Map();
  }

  answer(request: ReceivedRequest): HttpAnswer {
    const { pathname, searchParams } = new URL(request.path, 'http://indexer');
    try {
      switch (`${request.method} ${pathname}`) {
        case 'GET /services/collector/health':
        case 'GET /services/collector/health/1.0':
          return this.#condition === null
            ? reply(200, 'HEC is healthy', 17)
            : conditionReply(this.#condition);
        case 'POST /services/collector':
        case 'POST /services/collector/event':
        case 'POST /services/collector/event/1.0':
          return this.#post(request, searchParams);
        case 'POST /services/collector/ack':
          return this.#poll(request, searchParams);
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const more = error.event === null ? {} : { 'invalid-event-number': error.event };
      return reply(error.status, error.text, error.code, more);
    }
    return reply(404, 'The requested URL was not found on this server.', 404);
  }

  #post(request: ReceivedRequest, query: URLSearchParams): HttpAnswer {
    if (this.#condition !== null) return conditionReply(this.#condition);
    const token = this.#authorize(request, query);
    const channel = token.ack ? this.#channel(request, query) : null;
    if (request.body.length > this.#options.contentLengthMax) {
      return { answer: 'reply', status: 413, body: '<html>Content-Length too large</html>' };
    }
    if (channel !== null && channel.waiting.size + channel.written.size >= this.#options.pendingMax)
      return conditionReply(9);
    const { events, refusal } = readEvents(request, token, {
      ...this.#options,
      indexer: this.number,
    });
    const isLost = this.#losesNext && channel !== null;
    const isLate = isLost || this.#isHeld || (token.ack && this.#options.pollsInVain > 0);
    // Events before a wrong one are accepted too, as in Splunk, and no response gives their number.
    if (!isLate || refusal !== null) this.#write(events);
    if (refusal !== null) throw refusal;
    if (channel === null) return reply(200, 'Success', 0);
    const ackId = channel.nextAckId;
    channel.nextAckId += 1;
    if (isLost) this.#losesNext = false;
    else if (isLate) channel.waiting.set(ackId, { events, polls: 0 });
    else channel.written.add(ackId);
    return reply(200, 'Success', 0, { ackId });
  }

  #poll(request: ReceivedRequest, query: URLSearchParams): HttpAnswer {
    const condition = this.#condition;
    if (condition === 19 || condition === 20 || condition === 23) return conditionReply(condition);
    const token = this.#authorize(request, query);
    if (!token.ack) throw new Refused(14);
    const name = channelName(request, query);
    const asked = parsed(request.body.toString());
    const ids = isObject(asked) ? asked.acks : null;
    if (!Array.isArray(ids) || !ids.every((id) => Number.isSafeInteger(id))) throw new Refused(6);
    const channel = this.#channels.get(name);
    if (channel === undefined && this.#options.unknownChannel === 'refused') throw new Refused(11);
    const acks = Object.fromEntries(
      ids.map((id) => [String(id), this.#acknowledged(channel, Number(id))]),
    );
    return { answer: 'reply', status: 200, headers: json, body: JSON.stringify({ acks }) };
  }

  #acknowledged(channel: Channel | undefined, id: number): boolean {
    const waiting = channel?.waiting.get(id);
    if (waiting !== undefined && !this.#isHeld && waiting.polls++ >= this.#options.pollsInVain) {
      this.#write(waiting.events);
      channel?.waiting.delete(id);
      return true;
    }
    return channel?.written.delete(id) ?? false;
  }

  #authorize({ headers }: ReceivedRequest, query: URLSearchParams): SplunkToken {
    if (query.has('token')) throw new Refused(16);
    const { authorization } = headers;
    if (authorization === undefined) throw new Refused(2);
    const given = /^Splunk (\S+)$/.exec(authorization)?.[1];
    if (given === undefined) throw new Refused(3);
    const token = this.#options.tokens.find((known) => known.token === given);
    if (token === undefined) throw new Refused(4);
    if (token.disabled === true) throw new Refused(1);
    return token;
  }

  #channel(request: ReceivedRequest, query: URLSearchParams): Channel {
    const name = channelName(request, query);
    const known = this.#channels.get(name);
    if (known !== undefined) return known;
    const made: Channel = { nextAckId: 0, waiting: new Map(), written: new Set() };
    this.#channels.set(name, made);
    return made;
  }
}

const json = { 'content-type': 'application/json; charset=UTF-8' };

function reply(status: number, text: string, code: number, more: object = {}): HttpAnswer {
  const body = JSON.stringify({ text, code, ...more });
  return { answer: 'reply', status, headers: json, body };
}

function conditionReply(code: Condition): HttpAnswer {
  const [status, text] = conditions[code];
  return reply(status, text, code);
}

function channelName({ headers }: ReceivedRequest, query: URLSearchParams): string {
  const name = headers['x-splunk-request-channel'] ?? query.get('channel');
  if (name === null) throw new Refused(10);
  if (!guid.test(name)) throw new Refused(11);
  return name;
}
