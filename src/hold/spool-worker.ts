// The worker thread that owns the state database, so that an fsync or a WAL checkpoint never stalls the event loop.
// Writes that arrive while one transaction is being committed share the next one (group commit): the cost of an
// fsync is spread over whatever is waiting. An answer is posted only after the commit that covers it.

import { parentPort, workerData } from 'node:worker_threads';
import { invariant } from '../contracts/errors.ts';
import type { HeldPage, SpoolGauge } from '../contracts/spool.ts';
import type { Answer, Question, ToldError, WorkerSettings } from './spool-messages.ts';
import { Store, storeError } from './store.ts';

invariant(parentPort !== null, 'the spool worker runs in a worker thread');
const port = parentPort;
const settings = workerData as WorkerSettings;

const pruneEveryMs = 1_000;
const identitiesPruneEveryMs = 3_600_000;

let waiting: Question[] = [];
let flushing = false;
let prunedAt = 0;
let identitiesPrunedAt = Date.now();

const store = openStore();

function openStore(): Store {
  try {
    const opened = new Store(settings);
    opened.retainFor(settings.sinks);
    port.postMessage({ id: 0, result: opened.id, gauge: opened.gauge() } satisfies Answer);
    return opened;
  } catch (error) {
    port.postMessage({
      id: 0,
      error: described(error, 'opening the state database'),
    } satisfies Answer);
    process.exit(0);
  }
}

port.on('message', (question: Question) => {
  waiting.push(question);
  if (!flushing) {
    flushing = true;
    setImmediate(flush);
  }
});

function flush(): void {
  flushing = false;
  const questions = waiting;
  waiting = [];
  const now = Date.now();
  const answers: Answer[] = [];
  const pruning = now - prunedAt >= pruneEveryMs || settings.eager === true;
  const work = () => {
    for (const question of questions)
      answers.push({ id: question.id, result: write(question, now) });
    if (pruning) prune(now);
  };
  try {
    if (pruning || questions.some(writes)) store.transaction(work);
    else work();
  } catch (error) {
    const told = described(error, 'writing to the state database');
    for (const question of questions) post({ id: question.id, error: told }, store.gauge());
    return;
  }
  const gauge = store.gauge();
  for (const [index, question] of questions.entries()) {
    const answer = answers[index];
    if (answer !== undefined) post(readAfter(question, answer), gauge);
  }
  if (questions.some((question) => question.op === 'close')) close();
}

function post(answer: Answer, gauge: SpoolGauge): void {
  port.postMessage({ ...answer, gauge }, transferable(answer));
}

function prune(now: number): void {
  prunedAt = now;
  if (now - identitiesPrunedAt >= identitiesPruneEveryMs) {
    identitiesPrunedAt = now;
    store.pruneIdentities(now);
  }
  store.prune(now);
}

function writes(question: Question): boolean {
  return question.op === 'append' || question.op === 'acknowledge' || question.op === 'note';
}

function write(question: Question, now: number): unknown {
  switch (question.op) {
    case 'append':
      return store.append(question.entry, now);
    case 'acknowledge':
      return store.acknowledge(question.sink, question.step, now);
    case 'note':
      return store.note(question.kind, question.name, question.facts, now);
    case 'read':
    case 'progress':
    case 'recall':
    case 'trail':
    case 'entities':
    case 'tick':
    case 'close':
      return undefined;
  }
}

/** Reads see what the same flush has committed. */
function readAfter(question: Question, answer: Answer): Answer {
  try {
    switch (question.op) {
      case 'append':
      case 'acknowledge':
      case 'note':
      case 'close':
        return answer;
      case 'read':
        return { id: question.id, result: store.read(question.from, question.bytesMax) };
      case 'progress':
        return { id: question.id, result: store.progress(question.sink) };
      case 'recall':
        return { id: question.id, result: store.recall(question.stream) };
      case 'trail':
        return { id: question.id, result: store.trail(question.stream) };
      case 'entities':
        return { id: question.id, result: store.entities(question.stream) };
      case 'tick':
        store.shrink();
        return { id: question.id, result: store.refresh() };
    }
  } catch (error) {
    return { id: question.id, error: described(error, 'reading the state database') };
  }
}

function transferable(answer: Answer): ArrayBuffer[] {
  if (!Array.isArray(answer.result)) return [];
  const buffers = new Set<ArrayBuffer>();
  for (const page of answer.result as readonly Partial<HeldPage>[]) {
    const buffer = page.body?.buffer;
    if (buffer instanceof ArrayBuffer && page.body?.byteLength === buffer.byteLength)
      buffers.add(buffer);
  }
  return [...buffers];
}

function described(error: unknown, doing: string): ToldError {
  const told = storeError(error, doing);
  return { code: told.code, message: told.message, next: told.next };
}

function close(): void {
  store.close();
  port.close();
}
