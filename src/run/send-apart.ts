// What a process does that was started to send to one sink of a shard (`own_process`): it waits for
// what the shard's owner gives out, sends from there on, and begins anew when the owner is another
// one, the config has changed, or the group had not heard of it. What must stay true: of one sink of
// a shard one process sends, the one that has it in the sink's group; and what it had under way is
// settled before it begins anew.

import { setImmediate as turn } from 'node:timers/promises';
import { aborted } from 'node:util';
import type { Membership } from '../cluster/ownership.ts';
import { sendTurnOf } from '../cluster/send-turn.ts';
import { Sent } from '../cluster/sent.ts';
import type { Config } from '../config/config.ts';
import { planFrom } from '../config/plan.ts';
import { asExportError, type ExportError } from '../contracts/errors.ts';
import type { Clock } from '../contracts/tools.ts';
import { factsOf } from '../send/sender.ts';
import { type PlannedSink, Sending } from '../send/sending.ts';
import type { ReloadRequests } from './reload-requests.ts';
import { SenderSpool } from './sender-spool.ts';
import type { ShardSeat } from './shard-seat.ts';
import type { BootTools } from './tools.ts';

/** What it works with. */
export interface SendApartMeans {
  readonly sink: string;
  readonly seat: ShardSeat;
  readonly config: Config;
  /** Reads the config as it stands in its file now. */
  readonly read: () => Config;
  /** Left out: it is not read again. */
  readonly requests: ReloadRequests | undefined;
  readonly tools: BootTools;
  /** Called once, when another process has the sink. */
  readonly lost: (why: ExportError) => void;
}

const noteEveryMs = 2_000;
const lookEveryMs = 250;

/** Sends until stopped. */
export async function sendApart(means: SendApartMeans, stop: AbortSignal): Promise<void> {
  const { seat, tools, sink } = means;
  const { clock, log } = tools;
  let { config } = means;
  const { kafka } = config.state;
  if (kafka === null) return;
  const membership = seat.membership(kafka.sessionMs, tools, means.lost);
  const sent = new Sent(kafka, clock);
  try {
    await Promise.race([sent.follow(log), aborted(stop, sent)]);
    seat.works();
    while (!stop.aborted) {
      // What is sent by one that is given up would go out twice.
      await untilHeard(membership, true, { clock, stop });
      const change = new AbortController();
      const ending = AbortSignal.any([stop, change.signal]);
      const reloaded = reloadedFrom({ ...means, config }, ending).then((next) => {
        config = next ?? config;
        change.abort(new Error('the config has changed'));
      });
      const unheard = untilHeard(membership, false, { clock, stop: ending }).then(() =>
        change.abort(new Error('the group has not heard of this process')),
      );
      const givenUp = membership.givenUp;
      // While the group had given this process up, another one may have sent.
      await Promise.race([sent.caughtUp(), aborted(ending, sent)]);
      const confirm = async (signal?: AbortSignal) => {
        await membership.confirm(signal);
        if (membership.givenUp === givenUp) return;
        change.abort(new Error('the group had given this process up'));
        throw change.signal.reason;
      };
      const mayDo = { confirm, sendTurn: sendTurnOf(membership, confirm, clock) };
      await oneTurn({ ...means, tools: { ...tools, ...mayDo }, config, sent }, ending);
      change.abort(new Error('the turn is over'));
      await Promise.all([reloaded, unheard]);
      await turn();
    }
  } finally {
    await sent.close();
    await membership.close();
    log.info('nothing is sent any more', { sink });
  }
}

/** Resolves once the group has heard of this process, or has not any more; and when stopped. */
async function untilHeard(
  { isHeard }: Membership,
  wanted: boolean,
  { clock, stop }: { readonly clock: Clock; readonly stop: AbortSignal },
): Promise<void> {
  while (isHeard() !== wanted && !stop.aborted) {
    await clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
}

/** Resolves with the config as it is by then, once it was asked to be read again; null: it was not. */
async function reloadedFrom(
  { requests, read, tools, config }: SendApartMeans,
  stop: AbortSignal,
): Promise<Config | null> {
  while (requests !== undefined && !stop.aborted) {
    try {
      await requests.next(stop);
      const next = read();
      // Whoever has started this one goes on with these, and tells why.
      const { senders } = config.state.kafka ?? {};
      if (JSON.stringify(next.state.kafka?.senders) === JSON.stringify(senders)) return next;
    } catch (error) {
      if (stop.aborted) break;
      const { message } = asExportError(error, 'reading the config again');
      tools.log.warn('the config is not read again', { error: message.split('\n')[0] ?? '' });
    }
  }
  if (!stop.aborted) await aborted(stop, tools);
  return null;
}

/** From what one owner has given out to what the next one does. */
async function oneTurn(
  { sink: name, config, tools, sent, seat }: SendApartMeans & { sent: Sent },
  stop: AbortSignal,
): Promise<void> {
  const { clock, log, random } = tools;
  const plan = planFrom(config, tools);
  const { kafka, dir } = config.state;
  const sink = plan.sinks.find((one) => one.name === name);
  const held = await heldWord(sent, name, stop);
  if (kafka === null || sink === undefined || held === null) {
    // Whoever has started this process ends it where the sink is gone from the config.
    if (!stop.aborted) await aborted(stop, sent);
    return;
  }
  let sending: Sending | null = null;
  const facts = () => {
    const state = sending?.state[0];
    return state === undefined ? {} : factsOf(state);
  };
  const spool = new SenderSpool({ sink: name, kafka, sent, held, dir, clock, log, facts });
  try {
    sending = new Sending({ spool, tools, random }, plan);
    await sendUntil({ sending, sink, spool, config, clock, seat }, stop);
  } finally {
    spool.close();
  }
}

async function sendUntil(
  {
    sending,
    sink,
    spool,
    config,
    clock,
    seat,
  }: {
    readonly seat: ShardSeat;
    readonly sending: Sending;
    readonly sink: PlannedSink;
    readonly spool: SenderSpool;
    readonly config: Config;
    readonly clock: BootTools['clock'];
  },
  stop: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const note = async () => {
    for (;;) {
      await clock.sleep(noteEveryMs, over.signal);
      await spool.say().catch(() => undefined);
    }
  };
  sending.start(await sending.open([sink]));
  const retry = (name: string) => {
    const waitsUntil = sending.askNow(name);
    return waitsUntil === undefined ? [] : [{ part: 'sink', waitsUntil } as const];
  };
  const shown = seat.show({ look: null, tap: () => null, retry });
  const noting = note().catch(() => undefined);
  try {
    await Promise.race([aborted(stop, sending), spool.ended, sending.failed]);
  } finally {
    over.abort(new Error('ending'));
    shown.close();
    sending.finish();
    const ended = sending.stop(config.shutdown.timeoutMs);
    spool.hurry();
    await ended;
    await noting;
    await spool.say().catch(() => undefined);
  }
}

/** What the owner gives out for a sink; null: stopped before there was anything. */
async function heldWord(sent: Sent, sink: string, stop: AbortSignal) {
  const there = Promise.withResolvers<void>();
  const isThere = () => sent.held?.sinks[sink] !== undefined;
  const unlisten = sent.listen(() => isThere() && there.resolve());
  if (!isThere() && !stop.aborted) {
    await Promise.race([there.promise, aborted(stop, there)]);
  }
  unlisten();
  return isThere() ? sent.held : null;
}
