// A process that feeds a Kafka sink with exactly_once, and ends itself by SIGKILL at a named point. Started by
// kafka-once.test.ts, which resumes the same task and reads as a consumer of committed records.

import { type FeedTask, feed, instead, type KafkaRequest } from './kafka-engine.ts';

/** Where the process dies: at which request, before it is sent, once it is written, or once it is answered. */
export interface KillPoint {
  readonly request: KafkaRequest;
  readonly moment: 'before' | 'written' | 'answered';
  /** At the how manieth such request, from 1. */
  readonly nth: number;
}

/** What the process is to do. */
export interface ChildTask extends FeedTask {
  readonly kill: KillPoint;
}

function dieAt({ driver, kill: { request, moment, nth } }: ChildTask): void {
  const die = () => process.kill(process.pid, 'SIGKILL');
  let count = 0;
  const take = async (send: () => Promise<unknown>) => {
    count += 1;
    if (count < nth) return await send();
    if (moment === 'before') die();
    const answer = send();
    if (moment === 'written') setImmediate(die);
    const answered = await answer;
    die();
    return answered;
  };
  instead(request, take, driver);
}

const task: ChildTask = JSON.parse(process.argv[2] ?? '');
dieAt(task);
await feed(task);
