// A turn in a worker process knows of the group only what its supervisor reports: the time of the last answer, and why
// requests have failed since then.

import { expect, test } from 'vitest';
import { GroupContact } from '../../src/cluster/group-contact.ts';
import type { Log } from '../../src/contracts/tools.ts';
import type { ToTurn } from '../../src/run/shard-messages.ts';
import { ShardTurn } from '../../src/run/shard-turn.ts';
import { HostedTurn } from '../../src/run/shard-worker.ts';
import { manualClock } from '../support/manual-clock.ts';

const sessionMs = 6_000;

test('a turn reports why the supervisor had no answer of the group, until the group answers again', () => {
  const clock = manualClock();
  const lines: unknown[] = [];
  const keep = (event: string, _message: string, fields?: object) =>
    lines.push({ event, ...fields });
  const log = { info: keep, warn: keep } as unknown as Log;
  const contact = new GroupContact(sessionMs, { clock, log });
  const answered = () => contact.note({ monotonic: clock.monotonic(), now: clock.now() });
  answered();
  const start = { shard: 0, once: false, config: { text: '', companies: [] } };
  const hosted = new HostedTurn(start, {} as never, 1);
  const ownership = { contact, givenUp: 0, confirm: async () => 0 };
  const turn = new ShardTurn({ ...start, ownership, clock }, (message: ToTurn) =>
    hosted.received(message),
  );
  const { hasContact } = hosted.membership(sessionMs, { clock, log }, () => undefined);

  contact.failed('Connection closed');
  clock.jump(sessionMs);
  turn.look();
  hasContact();
  for (const passedMs of [0, sessionMs - 1, 1, sessionMs]) {
    contact.failed('the token endpoint answered 503');
    clock.jump(passedMs);
    turn.look();
    hasContact();
  }
  answered();
  turn.look();
  hasContact();
  clock.jump(sessionMs);
  turn.look();
  hasContact();

  expect(lines).toEqual([
    { event: 'group_unreachable', silent_ms: sessionMs, error: 'Connection closed' },
    {
      event: 'group_unreachable',
      silent_ms: 2 * sessionMs,
      error: 'the token endpoint answered 503',
    },
    { event: 'group_recovered' },
    { event: 'group_unreachable', silent_ms: sessionMs },
  ]);
});
