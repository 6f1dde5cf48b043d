// Holds sends back while this process may not send (SendTurn). What must stay true: while the turn
// is given nothing is delayed by a tick; and sends that wait resume in the order in which they came.

import type { Sink } from '../contracts/sink.ts';
import type { HttpClient, SendTurn } from '../contracts/tools.ts';

type Send = NonNullable<Sink['tryOut']>;

/** The sink, to which each batch is sent or tried only while the turn is given; all else is as it is. */
export function gatedSink(sink: Sink, turn: SendTurn): Sink {
  let last: Promise<void> | null = null;
  const gated =
    (send: Send): Send =>
    (batch, signal) => {
      if (last === null && turn.isGiven()) return send(batch, signal);
      const before = last ?? Promise.resolve();
      const gate = before.catch(() => undefined).then(() => turn.wait(signal));
      last = gate;
      const leave = () => {
        if (last === gate) last = null;
      };
      gate.then(leave, leave);
      return gate.then(() => send(batch, signal));
    };
  const send = gated((batch, signal) => sink.send(batch, signal));
  const tryOut = sink.tryOut && gated(sink.tryOut.bind(sink));
  return new Proxy(sink, {
    get(target, name) {
      if (name === 'send') return send;
      if (name === 'tryOut') return tryOut;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The client of a sink: a batch may be several requests, some of them from timers. */
export function gatedHttp(http: HttpClient, turn: SendTurn): HttpClient {
  return {
    ...(http.inFlight !== undefined && { inFlight: http.inFlight }),
    async request(request, signal) {
      if (!turn.isGiven()) await turn.wait(signal);
      return await http.request(request, signal);
    },
    close: () => http.close(),
  };
}
