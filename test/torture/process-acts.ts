// The faults of the process in a torture run: SIGKILL at each point of an event's way, from read to committed, at each
// sink that shows from outside where it is; and the other signals. A point is known by a sign from outside (signs.ts).
// Where the sign does not come in time the program is killed all the same, and the act counts as a kill at any moment.

import { appendFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runSluice } from '../support/cli.ts';
import type { Perform } from './acts.ts';
import type { Act } from './plan.ts';
import { kafkaSinks, partitionLog } from './receivers.ts';
import { transactionEnded, written } from './signs.ts';
import type { Stage } from './stage.ts';

const withinMs = 5_000;

/** Waits for a point; resolves to false where it did not come. */
type Point = (stage: Stage, act: Act) => Promise<boolean>;

/** Kills the program at this point, and starts it again a little later. */
function killAt(point: Point): Perform {
  return async (stage, act) => {
    await stage.begun();
    const came = await point(stage, act);
    await stage.kill();
    if (!came) stage.missed.add(act);
    await delay(act.draw * 300);
    stage.start();
  };
}

/** Kills the program in the very turn of the loop in which the sign is given. */
function killWhen(sign: string): Perform {
  return killAt((stage) => stage.signs.next(sign, withinMs, () => void stage.kill()));
}

const spoolWritten: Point = (stage) => written(join(stage.stateDir, 'sluice.db-wal'), withinMs);

type InLog = (log: string, withinMs: number) => Promise<boolean>;

async function inLog(partition: string, wait: InLog): Promise<boolean> {
  const log = partitionLog(partition);
  return log !== null && (await wait(log, withinMs));
}

/** In the log of either Kafka sink's topic. */
function inTopic(wait: InLog): Point {
  return (_, act) => inLog(`${kafkaSinks[act.draw < 0.5 ? 0 : 1]}-0`, wait);
}

/** In turn, as far as they come. */
function after(...points: readonly Point[]): Point {
  return async (stage, act) => {
    for (const point of points) if (!(await point(stage, act))) return false;
    return true;
  };
}

function sign(name: string): Point {
  return (stage) => stage.signs.next(name, withinMs);
}

function upTo(ms: number): Point {
  return async (_, act) => {
    await delay(act.draw * ms);
    return true;
  };
}

const fileWritten: Point = (stage) => written(stage.activeFile, withinMs);
const fileFinished: Point = (stage) =>
  written(stage.activeFile, withinMs, (name) => name.startsWith('events.0'));

/** SIGKILL at named points, in the order of an event's way. */
const kills: Readonly<Record<string, Perform>> = {
  'SIGKILL, page read and not held': killWhen('upstream answered'),
  'SIGKILL, page held and not sent': killAt(after(sign('upstream answered'), spoolWritten)),
  'SIGKILL, otlp received and not answered': killWhen('otel received'),
  'SIGKILL, otlp answered and not committed': killWhen('otel answered'),
  'SIGKILL, http received and not answered': killWhen('post received'),
  'SIGKILL, http answered and not committed': killWhen('post answered'),
  'SIGKILL, http answered and committed': killAt(
    after(sign('post answered'), spoolWritten, upTo(40)),
  ),
  'SIGKILL, syslog over TLS sent and not settled': killWhen('siem sent'),
  'SIGKILL, syslog over TCP sent and not settled': killWhen('archive sent'),
  'SIGKILL, syslog over TCP confirmed and not committed': killWhen('archive confirmed'),
  'SIGKILL, kafka records written and not committed': killAt(inTopic(written)),
  'SIGKILL within a kafka transaction': killAt(
    after(() => inLog('__transaction_state-0', written), upTo(20)),
  ),
  'SIGKILL, kafka committed and not noted': killAt(inTopic(transactionEnded)),
  'SIGKILL, file written and not committed': killAt(fileWritten),
  'SIGKILL, file about to be written': killAt(after(fileWritten, upTo(60))),
  'SIGKILL, file finished and the next not begun': killAt(fileFinished),
  'SIGKILL within a commit of the spool': killAt(spoolWritten),
};

/** The acts of the lane `process`. */
export const processActs: Readonly<Record<string, Perform>> = {
  ...kills,
  'SIGKILL at any moment': killAt(upTo(1_500)),
  'SIGKILL while starting': async (stage, act) => {
    await stage.stop();
    for (const share of [0.2, 0.6, 1]) {
      stage.start();
      await delay(150 + act.draw * share * 900);
      await stage.kill();
    }
    stage.start();
  },
  'SIGKILL while draining': killAt(async (stage, act) => {
    stage.signal('SIGTERM');
    return await upTo(400)(stage, act);
  }),
  'SIGKILL and a torn line in the file': async (stage) => {
    await stage.kill();
    // An empty file may be one that the sink has created and not noted: it has written no line there.
    const file = statSync(stage.activeFile, { throwIfNoEntry: false });
    if (file !== undefined && file.size > 0)
      appendFileSync(stage.activeFile, '{"metadata":{"uid":"to');
    stage.start();
  },
  'SIGTERM and start': async (stage, act) => {
    await stage.stop();
    await delay(act.draw * 500);
    stage.start();
  },
  'SIGSTOP and SIGCONT': async (stage, act) => {
    stage.signal('SIGSTOP');
    await delay(act.forMs);
    stage.signal('SIGCONT');
  },
  'a second process': async (stage) => {
    await stage.begun();
    const second = await runSluice(['run', '-c', stage.config], stage.surroundings);
    if (second.exitCode !== 1) {
      stage.defects.push(`a second process ended with ${second.exitCode}: ${second.stderr}`);
    }
  },
};
