// The commands in docs/archive/verify.md that get the uids of a receiver, run as they stand there against real servers: what they
// write is what `archive reconcile` finds equal to the archive. Splunk and Sentinel are not run by us, as the page says.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { elasticsearchSink } from '../../connectors/sinks/elasticsearch.ts';
import { kafkaSink } from '../../connectors/sinks/kafka.ts';
import type { SinkDefinition } from '../../src/contracts/definition.ts';
import type { Event } from '../../src/contracts/event.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { archived, aSigner, aWriter, heldPages } from '../archive/a-writer.ts';
import { deliver } from '../contracts/deliver.ts';
import { anEvent } from '../support/an-event.ts';
import { needCommands } from '../support/cache.ts';
import { runProgram } from '../support/children.ts';
import { runHere } from '../support/cli.ts';
import { kafkaBrokers, newTopic } from '../support/kafka.ts';
import { sharedOpenSearch } from '../support/opensearch.ts';
import { openSink } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/archive/verify.md'), 'utf8');
const readyMs = 600_000;
const january = Date.UTC(2026, 0, 15);
const march = Date.UTC(2026, 2, 15);
const count = 60;

/** The command of the page for this receiver. */
function recipe(receiver: string): string {
  const [, text = ''] = page.split(`\n**${receiver}**`);
  const [, command] = /```sh\n([^`]*?)```/.exec(text) ?? [];
  if (command === undefined)
    throw new Error(`docs/archive/verify.md has no command for ${receiver}`);
  return command;
}

/** An archive whose pages were read in January and March, and the events of them. */
async function anArchive() {
  const location = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(location) });
  const pages = heldPages(count / 3).map((one, i) => ({
    ...one,
    context: { ...one.context, fetchedAt: i % 2 === 0 ? january : march },
  }));
  await archived(writer, pages);
  await writer.close();
  const events = pages.flatMap(({ uids, first, context }): Event[] =>
    Array.from({ length: 3 }, (_, i) => {
      const uid = Buffer.from(uids).toString('hex', i * 32, (i + 1) * 32);
      return anEvent({
        offset: first + i,
        uid,
        ocsf: { metadata: { logged_time: context.fetchedAt } },
      });
    }),
  );
  const [condition, ...records] = events;
  if (condition === undefined) throw new Error('there are events');
  return { location, events: [asCondition(condition, 'source.gap'), ...records, ...aboutSinks()] };
}

/** Events of January that a sink reports about itself: no archive has them. */
function aboutSinks(): readonly Event[] {
  const codes = ['archive.checkpoint', 'archive.differs', 'sink.test', 'sink.gap'];
  return codes.map((code, i) => asCondition(anEvent({ offset: 1_000 + i }), code));
}

/** The event as one that sluice makes itself, with this code. */
function asCondition({ uid, offset }: Event, code: string): Event {
  const own = { product: { name: 'sluice' }, log_name: 'sluice', event_code: code };
  return anEvent({ uid, offset, ocsf: { metadata: { ...own, logged_time: january } } });
}

async function sent(
  definition: SinkDefinition,
  settings: object,
  events: readonly Event[],
  format: string,
) {
  const opened = await openSink(definition, { ...settings }, { format });
  const { refused } = await deliver(opened, events, 25);
  expect(refused).toEqual([]);
  await opened.sink.close();
}

/** Runs a command of the page in an empty directory, and compares the list that it writes there. */
async function compared(command: string, location: string) {
  const dir = tempDir();
  const result = await runProgram('sh', ['-c', `cd '${dir}'\n${command}`]);
  expect(result).toMatchObject({ exitCode: 0, errors: '' });
  const span = ['--from', '2026-01-01T00:00:00Z', '--to', '2026-02-01T00:00:00Z'];
  const given = ['--key', aSigner().verifier.vkey, '--uids', join(dir, 'uids.txt'), ...span];
  return await runHere(['archive', 'reconcile', location, ...given]);
}

test.each(['ecs', 'json'])(
  'Elastic: documents of an index (format: %s), read in several parts',
  {
    timeout: readyMs,
  },
  async (format) => {
    await needCommands(
      ['jq', 'curl'],
      ['jq', 'curl'],
      'The commands of docs/archive/verify.md need them.',
    );
    const { location, events } = await anArchive();
    const { url, ask } = await sharedOpenSearch();
    const index = `uid-lists-${process.pid}-${format}`;
    await sent(elasticsearchSink, { url, index }, events, format);
    await ask('POST', `/${index}*/_refresh`);
    const asWritten = recipe('Elastic');
    expect(asWritten).toContain('sluice-*');
    const command = `ES=${url}\n${asWritten.replace('sluice-*', `${index}*`).replace('"size":10000', '"size":7')}`;

    const { exitCode, stdout } = await compared(command, location);

    expect(stdout).toContain(`equal: ${count / 2} uids in both`);
    expect(exitCode).toBe(0);
  },
);

test('Kafka: committed events of a topic', { timeout: readyMs }, async () => {
  await needCommands(
    ['jq', 'kcat'],
    ['jq', 'kcat'],
    'The commands of docs/archive/verify.md need them.',
  );
  const { location, events } = await anArchive();
  const topic = await newTopic('uid-lists', { partitions: 3 });
  const brokers = await kafkaBrokers();
  await sent(kafkaSink, { brokers, topic }, events, 'json');
  const asWritten = recipe('Kafka');
  expect(asWritten).toContain('-t security-events');
  const command = asWritten.replace('k1:9092', brokers.join(',')).replace('security-events', topic);

  const { exitCode, stdout } = await compared(command, location);

  expect(stdout).toContain(`equal: ${count / 2} uids in both`);
  expect(exitCode).toBe(0);
});

test.each(['Splunk', 'Microsoft Sentinel'])(
  '%s: the page says that it is not run by us',
  (receiver) => {
    const [, text = ''] = page.split(`\n**${receiver}**`);
    expect(text.split('```')[0]).toContain('We have not run this command');
  },
);
