// The syslog-client library as used by a program that logs and does not wait: a fixed number of messages a second over
// TCP, RFC 5424, newline framing (the only one that the library has). With `again` the program sends again each message
// that the library reports as failed. Usage: plain-syslog-client.ts PORT RATE SECONDS again|once. SIGTERM or the end of
// the time ends it in order: it waits for unanswered messages, then closes the client. Prints the number of messages
// and of failures.

import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import syslog from 'syslog-client';

const [port = 0, rate = 0, seconds = 0] = process.argv.slice(2, 5).map(Number);
const again = process.argv[5] === 'again';
const stepMs = 10;
const answerWithinMs = 5_000;
const run = randomBytes(4).toString('hex');
const text = 'x'.repeat(500);

const client = syslog.createClient('127.0.0.1', {
  port,
  transport: syslog.Transport.Tcp,
  rfc3164: false,
  appName: 'plain',
});
// Each error is passed to the message's callback as well.
client.on('error', () => undefined);

let ended = false;
process.once('SIGTERM', () => {
  ended = true;
});

let given = 0;
let failed = 0;
let unanswered = 0;
const pending: string[] = [];

function send(uid: string): void {
  unanswered += 1;
  client.log(`uid="${uid}" ${text}`, {}, (error) => {
    unanswered -= 1;
    if (!error) return;
    failed += 1;
    if (again) pending.push(uid);
  });
}

const begun = performance.now();
while (!ended && performance.now() - begun < seconds * 1_000) {
  const due = Math.floor(((performance.now() - begun) / 1_000) * rate);
  for (const uid of pending.splice(0)) send(uid);
  for (; given < due; given++) send(`${run}${given.toString(16).padStart(8, '0')}`);
  await delay(stepMs);
}
const deadline = performance.now() + answerWithinMs;
while ((unanswered > 0 || pending.length > 0) && performance.now() < deadline) {
  for (const uid of pending.splice(0)) send(uid);
  await delay(stepMs);
}
client.close();
process.stdout.write(`${JSON.stringify({ given, failed })}\n`);
