// A process that feeds a Kafka sink with exactly_once as the engine would, and ends itself by SIGKILL at a named place.
// Started by kafka-once.test.ts, which reads afterwards what a consumer of committed records sees. Its own position is
// a file, written after an answer, so what it does not know after a kill it has to hear from Kafka.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { committedOf, deliver, instead, type KafkaRequest } from './kafka-engine.ts';

/** Where the process dies: at which request, before it is sent, once it is written, or once it is answered. */
export interface KillPoint {
  readonly request: KafkaRequest;
  readonly moment: 'before' | 'written' | 'answered';
  /** At the how manieth such request, from 1. */
  readonly nth: number;
}

/** What the process is to do. */
export interface ChildTask {
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly spoolId: string;
  readonly positionFile: string;
  readonly events: number;
  readonly batch: number;
  readonly kill: KillPoint | null;
}

async function run(task: ChildTask): Promise<void> {
  const { brokers, topic, spoolId, positionFile, events, batch, kill } = task;
  if (kill !== null) dieAt(kill);
  const config = { brokers, topic, key: 'uid', exactly_once: true };
  const opened = await openSink(kafkaSink, config, { spoolId });
  const own = existsSync(positionFile) ? Number(readFileSync(positionFile, 'utf8')) : 0;
  const theirs = (await committedOf(opened)) ?? 0;
  for (let at = Math.max(own, theirs); at < events; at += batch) {
    await deliver(opened, someEvents(Math.min(batch, events - at), at));
    writeFileSync(positionFile, String(Math.min(at + batch, events)));
  }
  await opened.sink.close();
  await opened.tools.http.close();
  console.log('delivered');
}

function dieAt({ request, moment, nth }: KillPoint): void {
  const die = () => process.kill(process.pid, 'SIGKILL');
  let count = 0;
  instead(request, async (send) => {
    count += 1;
    if (count < nth) return await send();
    if (moment === 'before') die();
    const answer = send();
    if (moment === 'written') setImmediate(die);
    const answered = await answer;
    die();
    return answered;
  });
}

await run(JSON.parse(process.argv[2] ?? ''));
