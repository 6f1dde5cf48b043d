// Two scripted Splunk indexers behind a balancer, and sluice: both are killed again and again, cookies end, and at the end
// each event is indexed, whatever was in an indexer's memory when it was killed.

import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { splunkTokens, startSplunk } from '../support/splunk-hec.ts';
import { waitUntil } from '../support/temp.ts';

const events = 30_000;
const kills = 4;
const step = events / (2 * kills + 2);

test('sluice and indexers that are killed lose no event', { tags: ['long'] }, async () => {
  const splunk = await startSplunk({ pollsInVain: 1, truncate: 0 });
  const { sandbox, configure, ...journey } = await aJourney({
    ...{ events, source: 'every: 1s, page_limit: 1000', env: { TOKEN: splunkTokens.acked.token } },
  });
  const config = configure('sluice', {
    sinks: `  splunk: { type: splunk_hec, url: "${splunk.url}", token: "\${env:TOKEN}", ack_timeout: 5s, batch: { events: 100 }, retry: { max: 2s } }`,
  });
  const start = () => journey.start(config);
  /** On a quick machine there are fewer left than a step has. */
  const further = () => {
    const count = Math.min(splunk.indexed.length + step, events);
    return waitUntil(() => splunk.indexed.length >= count, {
      what: () => `${count} events; ${splunk.indexed.length} are indexed`,
    });
  };

  let sluice = start();
  let lost = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    await further();
    const indexer = splunk.indexers[kill % 2];
    lost += indexer?.waiting ?? 0;
    indexer?.kill();
    if (kill % 2 === 1) splunk.expireCookies();
    await further();
    indexer?.restart();
    await sluice.kill('SIGKILL');
    sluice = start();
  }
  const uids = () => new Set(splunk.indexed.map(({ fields }) => fields.sluice_uid)).size;
  await waitUntil(() => splunk.indexed.length >= events && uids() >= events, {
    what: () => `all events; ${uids()} came`,
    timeoutMs: 240_000,
    everyMs: 500,
  });
  // All may be there before the last process has started, which a signal would end without an exit code.
  await sluice.waitForLine('"sink_resumed"');
  const ended = await sluice.kill('SIGTERM');

  expect([ended.exitCode, ended.stderr]).toEqual([0, ended.stderr]);
  const ids = new Set(splunk.indexed.map(({ raw }) => idIn(raw)));
  expect(ids).toEqual(new Set(sandbox.ledger().list('/v1/audit/events').ids()));
  expect(uids()).toBe(events);
  console.log(
    `splunk: ${kills} kills of each; ${lost} requests died with an indexer; ${splunk.indexed.length - events} repeats of ${events} events`,
  );
});

function idIn(raw: string): string {
  return JSON.parse(raw).metadata.original_event_uid;
}
