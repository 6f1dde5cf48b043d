// Delays sends while this process may not send (SendTurn). Invariants: while the turn is granted,
// no send is delayed, not even by a tick; waiting sends resume in their order of arrival.

import type { HttpClient, SendTurn, Sink } from '../contracts/index.ts';

type Send = Sink['send'];

/**
 * The sink with each batch sent or tried only while the turn is granted; everything else is
 * unchanged.
 */
export function gatedSink(sink: Sink, turn: SendTurn): Sink {
  let last: Promise<void> | null = null;
  const gated =
    (send: Send): Send =>
    (batch, signal, freeLines) => {
      if (last === null && turn.isGiven()) return send(batch, signal, freeLines);
      const before = last ?? Promise.resolve();
      const gate = before.catch(() => undefined).then(() => turn.wait(signal));
      last = gate;
      const leave = () => {
        if (last === gate) last = null;
      };
      gate.then(leave, leave);
      return gate.then(() => send(batch, signal, freeLines));
    };
  const send = gated((...sent) => sink.send(...sent));
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

/** The HTTP client of a sink: a batch may need several requests, some of them from timers. */
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
