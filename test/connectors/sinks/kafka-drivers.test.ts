// The Kafka sink's settings, and that a Kafka client is loaded only by a sink that is about to use it: it needs tenths
// of a second and many megabytes, which no other run should pay.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { runProgram } from '../../support/children.ts';
import { type Driver, drivers } from './kafka-engine.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const clients: Readonly<Record<Driver, string>> = {
  kafkajs: 'kafkajs',
  platformatic: '@platformatic/kafka',
};

/** The Kafka clients that a program loads, by a hook that sees each import. */
async function clientsLoadedBy(program: readonly string[]): Promise<readonly string[]> {
  const hook = `
    import { registerHooks } from 'node:module';
    import { writeSync } from 'node:fs';
    registerHooks({ resolve(specifier, context, next) {
      if (${JSON.stringify(Object.values(clients))}.includes(specifier)) writeSync(2, '\\nloads ' + specifier + '\\n');
      return next(specifier, context);
    } });`;
  const hooked = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
  const { exitCode, errors } = await runProgram(process.execPath, [...hooked, ...program]);
  if (exitCode !== 0) throw new Error(errors);
  return [...new Set([...errors.matchAll(/^loads (.*)$/gm)].map(([, client]) => client ?? ''))];
}

describe('Kafka clients', () => {
  test('none is loaded by sluice --help', async () => {
    expect(await clientsLoadedBy([join(root, 'src/boot/sluice.js'), '--help'])).toEqual([]);
  });

  test.each(drivers)('%s alone is loaded by a sink that names it', async (driver) => {
    const config = JSON.stringify({ driver, brokers: ['127.0.0.1:1'], topic: 'x' });
    const program = `
      import { kafkaSink } from '${join(root, 'connectors/sinks/kafka.ts')}';
      import { openSink } from '${join(root, 'test/support/sink-opening.ts')}';
      await openSink(kafkaSink, ${config});
      process.exit();`;

    expect(await clientsLoadedBy(['--input-type=module', '--eval', program])).toEqual([
      clients[driver],
    ]);
  });
});

describe('kafkaSink settings', () => {
  const parse = (settings: object) =>
    z
      .strictObject(kafkaSink.fields)
      .safeParse({ brokers: ['k1:9092'], topic: 'events', ...settings });

  test('defaults', () => {
    expect(parse({}).data).toMatchObject({
      exactly_once: false,
      key: 'stream',
      compression: 'none',
      client_id: 'sluice',
      max_message: 1024 * 1024,
      timeout: 30_000,
      driver: 'kafkajs',
    });
  });

  test.each([
    { brokers: [] },
    { brokers: ['k1'] },
    { brokers: ['k1:0'] },
    { brokers: ['k1:70000'] },
    { brokers: ['::1:9092'] },
    { brokers: ['kafka://k1:9092'] },
    { topic: 'a topic' },
    { topic: '..' },
    { topic: 'x'.repeat(250) },
    { key: 'partition' },
    { compression: 'lz4' },
    { sasl: { mechanism: 'gssapi', username: 'a', password: 'b' } },
    { driver: 'other' },
  ])('refuses %j', (settings) => {
    expect(parse(settings).success).toBe(false);
  });

  test.each([['[::1]:9092'], ['10.0.0.1:9092'], ['kafka-1.example:19092']])(
    'takes broker %s',
    (broker) => {
      expect(parse({ brokers: [broker] }).success).toBe(true);
    },
  );

  test('transactional_id without exactly_once is a flaw', () => {
    const settings = { type: 'kafka', ...parse({ transactional_id: 'x' }).data };

    expect(kafkaSink.flaw?.(settings)).toMatch(/exactly_once: true/);
    expect(kafkaSink.flaw?.({ ...settings, exactly_once: true })).toBeNull();
  });

  test('promises each event once only with exactly_once', () => {
    const assurance = (settings: object) =>
      kafkaSink.assurance({ type: 'kafka', ...parse(settings).data });

    expect(assurance({})).toBe('answered');
    expect(assurance({ exactly_once: true })).toBe('once');
  });
});
