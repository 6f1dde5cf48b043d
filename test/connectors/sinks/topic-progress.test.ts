// The knowledge that an exactly-once sink has of its topic, after another process has resumed its state.

import { expect, test } from 'vitest';
import { keptUid } from '../../../connectors/shared/known-events.ts';
import { TopicProgress } from '../../../connectors/sinks/kafka/topic-progress.ts';
import type { Batch } from '../../../src/contracts/sink.ts';
import { anEvent } from '../../support/an-event.ts';
import { silent } from '../../support/silent-log.ts';

const lines = {
  ...{ bytes: new Uint8Array(20), starts: Uint32Array.of(0, 10), ends: Uint32Array.of(9, 19) },
  length: 2,
};

test('events that another process has sent meanwhile are left out when the topic turns out to be ahead', async () => {
  const [here, there] = [anEvent({ offset: 7 }), anEvent({ offset: 8 })];
  const inTopic = new Set<string>();
  const statusView = new TopicProgress({
    numbering: { spool: 's', epochs: [{ id: 100, until: null }] },
    ...{ mark: null, log: silent },
    reader: {
      rangesFrom: async () => ({ 0: ['0', '9'] }),
      uidsIn: async () => new Set(inTopic),
    },
  });
  const { signal } = new AbortController();
  const committed = (epoch: number, position: number) => ({
    position,
    note: JSON.stringify({ epoch }),
  });
  await statusView.reach(committed(100, 7), signal);
  const batch: Batch = { id: 'b', events: [here, there], pages: [], lines, start: 7, end: 9 };
  expect(statusView.missing(batch).events).toEqual([here, there]);

  inTopic.add(keptUid(here));
  await statusView.reach(committed(200, 8), signal);

  expect(statusView.missing(batch).events).toEqual([there]);
});
