// The acts of a torture run, by lane: on the process (process-acts.ts), on each sink's receiver, on upstream
// (upstream-acts.ts). An act breaks one thing, waits, and repairs it before it resolves, so that the next act of its
// lane finds everything in order. Acts use only means of an operator or a bad day: signals, closed ports, wrong
// responses, other certificates. The program gets no notice of them.

import { setTimeout as delay } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { postCertificateActs, siemCertificateActs } from './certificate-acts.ts';
import type { Act, Pace } from './plan.ts';
import type { PostMode } from './posts.ts';
import { processActs } from './process-acts.ts';
import { kafkaSinks } from './receivers.ts';
import type { Stage } from './stage.ts';
import { dataActs, upstreamActs } from './upstream-acts.ts';

/** Does one act and undoes it. */
export type Perform = (stage: Stage, act: Act) => Promise<void>;

/** A lane's acts by name, and how fast they follow each other. */
export interface Lane {
  readonly pace: Pace;
  readonly acts: Readonly<Record<string, Perform>>;
}

function postActs(which: 'otel' | 'post'): Readonly<Record<string, Perform>> {
  const mood =
    (mode: PostMode): Perform =>
    async (stage, act) => {
      const posts = stage.receivers.posts[which];
      posts.mode = mode;
      await delay(act.forMs);
      posts.mode = 'accept';
    };
  return {
    refuses: async (stage, act) => {
      await stage.receivers[which].close();
      await delay(act.forMs);
      await stage.receivers[which].reopen();
    },
    resets: mood('reset'),
    'does not answer': mood('hang'),
    'cuts its answer': mood('cut'),
    'answers late': mood('late'),
    'answers 429': mood('throttle'),
    'answers 503': mood('unavailable'),
    'answers 401': mood('unauthorised'),
    'answers with a web page': mood('web_page'),
    'answers 413': mood('small_only'),
    'refuses some records for good': mood('poison'),
    ...(which === 'otel' ? { 'takes half of each request': mood('partly') } : postCertificateActs),
  };
}

const siemActs: Readonly<Record<string, Perform>> = {
  'resets connections': resetsOf('siem'),
  refuses: async (stage, act) => {
    await stage.receivers.siem.close();
    await delay(act.forMs);
    await stage.receivers.siem.reopen();
  },
};

const archiveActs: Readonly<Record<string, Perform>> = {
  'resets connections': resetsOf('archive'),
  refuses: async (stage, act) => {
    await stage.receivers.archive.close();
    await delay(act.forMs);
    await stage.receivers.archive.reopen();
  },
  'stalls, then resets': async (stage, act) => {
    stage.receivers.archive.behave('stall');
    await delay(act.forMs);
    stage.receivers.archive.resetAll();
    stage.receivers.archive.behave('pass');
  },
  'is slow': async (stage, act) => {
    stage.receivers.archive.behave('slow');
    await delay(act.forMs);
    stage.receivers.archive.behave('pass');
  },
  'leads nowhere': async (stage, act) => {
    stage.receivers.archive.behave('black_hole');
    stage.receivers.archive.resetAll();
    await delay(act.forMs);
    stage.receivers.archive.behave('pass');
  },
};

const rsyslogActs: Readonly<Record<string, Perform>> = {
  ...siemCertificateActs,
  restarts: (stage) => stage.receivers.rsyslog.restart(),
  'is stopped for a while': async (stage, act) => {
    await stage.receivers.rsyslog.stop();
    await delay(act.forMs);
    await stage.receivers.rsyslog.restart();
  },
  'is frozen for a while': async (stage, act) => {
    stage.receivers.rsyslog.pause();
    await delay(Math.min(act.forMs, 1_500));
    stage.receivers.rsyslog.resume();
    // What waited in the sockets is read before anything else is done to it.
    await delay(500);
  },
};

function resetsOf(which: 'siem' | 'archive'): Perform {
  return async (stage, act) => {
    const end = performance.now() + act.forMs;
    while (performance.now() < end) {
      stage.receivers[which].resetAll();
      await delay(50 + act.draw * 300);
    }
  };
}

const kafkaActs: Readonly<Record<string, Perform>> = {
  'broker stopped and started': async (stage, act) => {
    await stage.receivers.kafka.stop();
    await delay(act.forMs);
    await stage.receivers.kafka.start();
  },
  'broker killed and started': async (stage) => {
    await stage.receivers.kafka.kill();
    await stage.receivers.kafka.start();
  },
  'broker frozen': async (stage, act) => {
    const { pid } = stage.receivers.kafka;
    if (pid === undefined) return;
    process.kill(pid, 'SIGSTOP');
    await delay(act.forMs);
    process.kill(pid, 'SIGCONT');
  },
  'producer fenced by another': async (stage, act) => {
    const name = kafkaSinks[act.draw < 0.5 ? 0 : 1];
    const brokers = [stage.receivers.kafka.addresses.plain];
    const kafka = new Kafka({ clientId: 'zombie', brokers, logLevel: logLevel.NOTHING });
    const producer = kafka.producer({
      transactionalId: name,
      idempotent: true,
      maxInFlightRequests: 1,
    });
    await producer.connect();
    try {
      const transaction = await producer.transaction();
      await transaction.send({ topic: name, messages: [{ value: 'from a zombie' }] });
      await transaction.abort();
    } catch {
      // The program was faster and has fenced this one in turn.
    } finally {
      await producer.disconnect();
    }
  },
};

/** All lanes. */
export const lanes: Readonly<Record<string, Lane>> = {
  process: { pace: { after: [100, 1_500], lasts: [500, 3_000] }, acts: processActs },
  otlp: { pace: { after: [500, 2_000], lasts: [500, 3_000] }, acts: postActs('otel') },
  http: { pace: { after: [500, 2_000], lasts: [500, 3_000] }, acts: postActs('post') },
  'syslog over TLS': { pace: { after: [2_000, 6_000], lasts: [500, 2_000] }, acts: siemActs },
  'syslog over TCP': { pace: { after: [1_000, 4_000], lasts: [500, 3_000] }, acts: archiveActs },
  rsyslog: { pace: { after: [4_000, 9_000], lasts: [500, 3_000] }, acts: rsyslogActs },
  kafka: { pace: { after: [4_000, 9_000], lasts: [500, 3_000] }, acts: kafkaActs },
  upstream: { pace: { after: [300, 1_500], lasts: [800, 3_000] }, acts: upstreamActs },
  data: { pace: { after: [500, 2_500], lasts: [0, 0] }, acts: dataActs },
};
