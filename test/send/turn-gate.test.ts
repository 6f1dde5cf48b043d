// Sends of a process that may not send for a while: none goes out before its turn, and none overtakes another.

import { expect, test } from 'vitest';
import { sendTurnOf } from '../../src/cluster/group-contact.ts';
import type { Batch, Delivery, Sink } from '../../src/contracts/sink.ts';
import type { HttpClient } from '../../src/contracts/tools.ts';
import { gatedHttp, gatedSink } from '../../src/send/turn-gate.ts';
import { systemClock } from '../../src/tools/clock.ts';

const never = new AbortController().signal;
const delivered: Delivery = { outcome: 'delivered' };

/** A membership that a test sets, with the confirmations that were requested. */
function aMembership() {
  const state = { heard: true, givenUp: 0, confirmed: 0, refuses: false };
  const turn = sendTurnOf(
    {
      hasContact: () => state.heard,
      get givenUp() {
        return state.givenUp;
      },
    },
    async () => {
      state.confirmed += 1;
      if (state.refuses) throw new Error('another process has the shard');
    },
    systemClock(),
  );
  return { state, turn };
}

function aSink() {
  const sent: string[] = [];
  const sink: Sink = {
    async send({ id }) {
      sent.push(id);
      return delivered;
    },
    close: async () => undefined,
  };
  return { sent, sink };
}

const batch = (id: string): Batch => ({
  ...{ id, events: [], pages: [], start: 0, end: 1 },
  lines: [] as unknown as Batch['lines'],
});

test('while the group answers a batch is sent at once, and nothing is confirmed', async () => {
  const { state, turn } = aMembership();
  const { sent, sink } = aSink();

  const answer = gatedSink(sink, turn).send(batch('a'), never);

  expect(sent).toEqual(['a']);
  expect(await answer).toEqual(delivered);
  expect(state.confirmed).toBe(0);
});

test('after a silence nothing is sent before the shard is confirmed, and then in order', async () => {
  const { state, turn } = aMembership();
  const { sent, sink } = aSink();
  const gated = gatedSink(sink, turn);
  state.heard = false;
  const answers = ['a', 'b', 'c'].map((id) => gated.send(batch(id), never));
  await systemClock().sleep(300);
  expect(sent).toEqual([]);

  state.heard = true;
  await Promise.all(answers);
  expect([sent, state.confirmed]).toEqual([['a', 'b', 'c'], 1]);
  await gated.send(batch('d'), never);
  expect([sent.at(-1), state.confirmed]).toEqual(['d', 1]);
});

test('a process that the group has given up confirms though the group answers again, and sends nothing where it is refused', async () => {
  const { state, turn } = aMembership();
  const { sent, sink } = aSink();
  const gated = gatedSink(sink, turn);
  state.givenUp = 1;
  state.refuses = true;
  await expect(gated.send(batch('a'), never)).rejects.toThrow('another process has the shard');
  expect([sent, state.confirmed]).toEqual([[], 1]);

  state.refuses = false;
  await gated.send(batch('a'), never);
  expect([sent, state.confirmed]).toEqual([['a'], 2]);
});

test('a send that waits ends with its signal', async () => {
  const { state, turn } = aMembership();
  const { sent, sink } = aSink();
  state.heard = false;
  const stop = new AbortController();
  const answer = gatedSink(sink, turn).send(batch('a'), stop.signal);
  stop.abort(new Error('giving up'));

  await expect(answer).rejects.toThrow('giving up');
  state.heard = true;
  expect(sent).toEqual([]);
});

test('a batch is tried out only in its turn, and all else of the sink is as it is', async () => {
  const { state, turn } = aMembership();
  /** Its methods need their own object. */
  class Picky implements Sink {
    readonly #tried: string[] = [];
    send = async () => delivered;
    async tryOut({ id }: Batch) {
      this.#tried.push(id);
      return delivered;
    }
    destinationOf() {
      return `of ${this.#tried.length}`;
    }
    async close() {
      this.#tried.splice(0);
    }
  }
  const gated = gatedSink(new Picky(), turn);
  expect([gated.destinationOf?.({} as never), gated.ready]).toEqual(['of 0', undefined]);
  state.heard = false;
  const tried = gated.tryOut?.(batch('a'), never);
  await systemClock().sleep(150);
  expect(gated.destinationOf?.({} as never)).toBe('of 0');
  state.heard = true;
  await tried;
  expect(gated.destinationOf?.({} as never)).toBe('of 1');
  await gated.close();
  expect(gatedSink(aSink().sink, turn).tryOut).toBeUndefined();
});

test('each request of a sink over HTTP waits for the turn too', async () => {
  const { state, turn } = aMembership();
  let requests = 0;
  const http: HttpClient = {
    request: async () => {
      requests += 1;
      return { status: 200, headers: {}, body: new Uint8Array() };
    },
    close: async () => undefined,
  };
  const request = {
    ...({ method: 'POST', url: 'http://127.0.0.1/', headers: {} } as const),
    ...{ timeoutMs: 1_000, bodyBytesMax: 10 },
  };
  state.heard = false;
  const answer = gatedHttp(http, turn).request(request, never);
  await systemClock().sleep(150);
  expect(requests).toBe(0);
  state.heard = true;
  expect((await answer).status).toBe(200);
});
