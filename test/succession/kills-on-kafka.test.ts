// A few kills of what `npm run succession-kills` does for long, with the state in Kafka.
// @module-tag long

import { expect, test } from 'vitest';
import { randomFrom } from '../archive-kills/kills.ts';
import { findingsOf, runKills } from '../succession-kills/kills.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir } from '../support/temp.ts';

test('a pair of two processes with the state in Kafka delivers each record once, however they are killed', async () => {
  const result = await runKills({
    ...{ state: 'kafka', kills: 5, records: 300, random: randomFrom(11) },
    ...{ brokers: await kafkaBrokers(), dir: tempDir() },
  });

  expect(findingsOf(result)).toEqual([]);
  expect(result.kills).toMatchObject({ cutover: 1, rollback: 1 });
}, 240_000);
