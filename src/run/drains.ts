// Whether operators have drained this process (`sluice cluster drain`), read from the control topic as long as the process
// runs, also on standby.

import type { Control } from '../cluster/kafka.ts';
import type { Config } from '../config/index.ts';
import { type Log, untilAborted } from '../contracts/index.ts';
import { systemClock } from '../tools/index.ts';

/** The control topic, and the drain of this process there. */
export interface Drains {
  readonly control: Control;
  readonly isDrained: () => boolean;
  /** Resolves after the topic was read once; rejects with `sink_refused`, or with the signal's reason. */
  known(stop: AbortSignal): Promise<void>;
  /** Aborts with `stop`, and when this process is drained. */
  orDrained(stop: AbortSignal): AbortSignal;
  close(): Promise<void>;
}

/** Starts to follow the topic; null: the state is not in Kafka. */
export async function openDrains({ kafka }: Config['state'], log: Log): Promise<Drains | null> {
  if (kafka === null) return null;
  // Its client takes long to load.
  const { Control } = await import('../cluster/kafka.ts');
  const control = new Control(kafka, systemClock());
  const { instance } = kafka;
  const isDrained = () => instance !== undefined && control.drained.has(instance);
  return {
    control,
    isDrained,
    async known(stop) {
      await untilAborted(control.follow(log), stop);
    },
    orDrained(stop) {
      const drained = new AbortController();
      const look = () => {
        if (isDrained()) drained.abort(new Error('drained by sluice cluster drain'));
      };
      const unlisten = control.listen(look);
      drained.signal.addEventListener('abort', unlisten, { once: true });
      look();
      return AbortSignal.any([stop, drained.signal]);
    },
    close: () => control.close(),
  };
}
