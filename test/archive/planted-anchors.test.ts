// Planted files in place of the signatures of an authority or a witness beside a checkpoint. The writer enters only
// signatures that it can prove, and replaces planted files by those that it has received itself.

import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { archiveSink } from '../../connectors/sinks/archive.ts';
import { type Anchor, Anchors } from '../../src/archive/anchors/anchors.ts';
import { authoritiesIn } from '../../src/archive/anchors/time-stamp.ts';
import { anchorPath } from '../../src/archive/layout.ts';
import type { Published } from '../../src/archive/log.ts';
import { parseWitnessKey, signingKeyText } from '../../src/archive/note.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { startWitness } from '../support/archive/oracles.ts';
import { startTimeStampAuthority } from '../support/archive/time-stamp-authority.ts';
import { silent } from '../support/silent-log.ts';
import { openSink, someEvents } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';
import { aSigner, readArchive } from './a-writer.ts';
import { anchorsIn, sent, verified } from './anchored.ts';

const signing_key = signingKeyText('archive.test', Buffer.alloc(32, 1));

/** Writes an archive whose one checkpoint is anchored as it is closed, and another after `between`. */
async function twice(anchors: object, between: (location: string) => Promise<void> | void) {
  const location = join(tempDir(), 'archive');
  const settings = { location, signing_key, checkpoint_every: '1h', ...anchors };
  const first = await openSink(archiveSink, settings);
  await sent(first.sink, first.batch(someEvents(2)));
  await first.sink.close();
  await between(location);
  const second = await openSink(archiveSink, { ...settings });
  await sent(second.sink, second.batch(someEvents(2, 2)));
  await second.sink.close();
  const { entries } = await readArchive(location);
  const named = entries.flatMap((entry) => (entry.t === 'anchor' ? [entry.object] : []));
  const refused = second.tools.logged.filter(({ text }) => text.includes('is not entered'));
  return { location, named, refused };
}

const newest = (location: string, ending: 'tsr' | 'cosig') =>
  anchorsIn(location, ending).at(-1) ?? '';

test('a stamp of other bytes, put beside the newest checkpoint between two runs, is not entered', async () => {
  const tsa = await startTimeStampAuthority();
  const settings = { tsa: { url: tsa.url, ca_file: tsa.caFile, every: '0s' } };
  let planted = '';
  const { location, named, refused } = await twice(settings, async (at) => {
    planted = newest(at, 'tsr');
    writeFileSync(planted, await tsa.stamp(Buffer.from('something else')));
  });
  const authorities = authoritiesIn(readFileSync(tsa.caFile, 'utf8'));

  expect(named.map((name) => join(location, name))).not.toContain(planted);
  expect(refused).toHaveLength(1);
  expect((await verified(location, { authorities })).breaks).toEqual([]);
});

test.for<readonly [string, (file: string) => void]>([
  ['without a line', (file) => writeFileSync(file, readFileSync(file.replace('cosig', 'note')))],
  ['with a line too many', (file) => appendFileSync(file, `— witness.two ${'A'.repeat(100)}\n`)],
  [
    'with a wrong line',
    (file) =>
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace(
          /(— witness\.test .{40})(.)/,
          (_, head, one) => `${head}${one === 'A' ? 'B' : 'A'}`,
        ),
      ),
  ],
])('a cosignature %s is not entered', async ([, plant], context) => {
  const log = aSigner().verifier.vkey;
  const witness = await startWitness(context, { log });
  const settings = { witnesses: [{ url: witness.url, key: witness.vkey }] };
  let planted = '';
  const { location, named, refused } = await twice(settings, (at) => {
    planted = newest(at, 'cosig');
    plant(planted);
  });
  const keys = [parseWitnessKey(witness.vkey)];

  expect(named.map((name) => join(location, name))).not.toContain(planted);
  expect(refused).toHaveLength(1);
  expect((await verified(location, { witnesses: { keys, quorum: 1 } })).breaks).toEqual([]);
});

test('one of a kind that the sink does not request is not entered', async () => {
  const tsa = await startTimeStampAuthority();
  const settings = { tsa: { url: tsa.url, ca_file: tsa.caFile, every: '0s' } };
  const { named, refused } = await twice(settings, (at) => {
    const file = newest(at, 'tsr');
    renameSync(file, file.replace('tsr', 'cosig'));
  });

  expect(named.join()).not.toContain('cosig');
  expect(refused).toHaveLength(1);
});

const checkpoint: Published = { size: 3, root: '00', at: Date.now(), note: Buffer.from('note') };

/** An anchor whose answer comes after somebody has put `planted` where it is to be kept. */
async function answered(planted: string) {
  const store = writableStore();
  const name = anchorPath(checkpoint.size, checkpoint.at, 'tsr');
  const anchor: Anchor = {
    ...{ kind: 'tsr', everyMs: 0 },
    async ask() {
      await store.create(name, [Buffer.from(planted)]);
      return { proof: Buffer.from('true proof'), failures: [] };
    },
    check(proof) {
      if (!Buffer.from(proof).toString().startsWith('true')) throw new SyntaxError('it is forged');
    },
  };
  const anchors = new Anchors([anchor], { store, clock: systemClock(), log: silent });
  anchors.signed(checkpoint);
  await anchors.finish();
  const kept = Buffer.from((await store.read(name))?.body ?? []).toString();
  return { entered: anchors.take().length, kept, failures: anchors.failures };
}

test('an anchor’s response replaces a file that was planted before, unless that proves the same', async () => {
  expect(await answered('forged')).toEqual({ entered: 1, kept: 'true proof', failures: [] });
  expect(await answered('true, too')).toEqual({ entered: 0, kept: 'true, too', failures: [] });
});
