// The acts on three processes with their state in Kafka: each has a lane of its own, in which it is killed, frozen for
// longer than its session, ended in order, and cut from Kafka or from upstream alone; and the broker and upstream have
// theirs. Each act undoes its damage before it resolves.

import { setTimeout as delay } from 'node:timers/promises';
import type { Act, Pace } from '../plan.ts';
import type { NetworkProxy } from '../proxy.ts';
import { type PerformUpstream, upstreamActs } from '../upstream-acts.ts';
import { type ClusterStage, sessionS } from './stage.ts';

/** Does one act and undoes it. */
type Perform = (stage: ClusterStage, act: Act) => Promise<void>;

/** A lane's acts by name, and how fast they follow each other. */
interface Lane {
  readonly pace: Pace;
  readonly acts: Readonly<Record<string, Perform>>;
}

/** Longer than the session: a successor begins meanwhile. */
const longMs = (draw: number) => sessionS * 1_000 * (1 + draw);

/** Cuts off what is behind a proxy. */
function cuts(from: string, proxyOf: (stage: ClusterStage) => NetworkProxy | undefined) {
  const refuses =
    (forMs: (act: Act) => number): Perform =>
    async (stage, act) => {
      await proxyOf(stage)?.close();
      await delay(forMs(act));
      await proxyOf(stage)?.reopen();
    };
  return {
    [`cut from ${from} for a moment`]: refuses(({ forMs }) => forMs),
    [`cut from ${from} for long`]: refuses(({ draw }) => longMs(draw)),
    [`packets to ${from} go nowhere`]: async (stage, act) => {
      proxyOf(stage)?.behave('stall');
      await delay(longMs(act.draw));
      proxyOf(stage)?.resetAll();
      proxyOf(stage)?.behave('pass');
    },
  } satisfies Readonly<Record<string, Perform>>;
}

function processActs(index: number): Readonly<Record<string, Perform>> {
  return {
    'SIGKILL and start': async (stage, act) => {
      await stage.end(index, 'SIGKILL');
      await delay(act.forMs);
      stage.start(index);
    },
    'SIGKILL while starting': async (stage, act) => {
      await stage.end(index, 'SIGKILL');
      stage.start(index);
      await delay(200 + act.draw * 2_000);
      await stage.end(index, 'SIGKILL');
      stage.start(index);
    },
    'SIGTERM and start': async (stage, act) => {
      await stage.end(index, 'SIGTERM');
      await delay(act.forMs);
      stage.start(index);
    },
    'frozen for a moment': async (stage, act) => {
      stage.signal(index, 'SIGSTOP');
      await delay(act.forMs);
      stage.signal(index, 'SIGCONT');
    },
    'frozen for twice the session': async (stage, act) => {
      stage.signal(index, 'SIGSTOP');
      await delay(longMs(act.draw));
      stage.signal(index, 'SIGCONT');
    },
    ...cuts('Kafka', ({ toKafka }) => toKafka[index]),
  };
}

const brokerActs: Readonly<Record<string, Perform>> = {
  'killed and started': async ({ kafka }) => {
    await kafka.kill();
    await kafka.start();
  },
  'stopped and started': async ({ kafka }, act) => {
    await kafka.stop();
    await delay(act.forMs);
    await kafka.start();
  },
  frozen: async ({ kafka: { pid } }, act) => {
    if (pid === undefined) return;
    process.kill(pid, 'SIGSTOP');
    await delay(act.forMs * 3);
    process.kill(pid, 'SIGCONT');
  },
};

/** Without those that refuse requests as too many: in the accounts such are over the ceiling. */
const upstream: Readonly<Record<string, PerformUpstream>> = Object.fromEntries(
  Object.entries(upstreamActs).filter(([name]) => !name.startsWith('429')),
);

/** All lanes for so many processes. */
export function clusterLanes(processes: number): Readonly<Record<string, Lane>> {
  const own = Array.from({ length: processes }, (_, index): [string, Lane] => [
    `sluice-${index}`,
    { pace: { after: [2_000, 12_000], lasts: [500, 4_000] }, acts: processActs(index) },
  ]);
  return {
    ...Object.fromEntries(own),
    broker: { pace: { after: [15_000, 40_000], lasts: [500, 3_000] }, acts: brokerActs },
    upstream: { pace: { after: [500, 3_000], lasts: [500, 2_000] }, acts: upstream },
    network: {
      pace: { after: [20_000, 60_000], lasts: [500, 4_000] },
      acts: cuts('upstream', ({ toUpstream }) => toUpstream),
    },
  };
}
