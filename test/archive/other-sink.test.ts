// An archive that the config gives to another sink: its pages of that sink's spool say nothing about those that wait for
// this one.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseSigningKey, signingKeyText } from '../../src/archive/note.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aWriter, heldPages, type State } from './a-writer.ts';

/** An archive with pages of the sink `first`. */
async function anArchive() {
  const store = openDirectory(tempDir());
  const state: State = { mark: null };
  const writer = await aWriter({ store, state, sink: 'first', sinks: ['first', 'second'] });
  await archived(writer, heldPages(3));
  await writer.close();
  return { store, state };
}

/** A sink's mark of an archive elsewhere. */
async function aMark(): Promise<State> {
  const { state } = await anArchive();
  return state;
}

test('another sink is refused while the first is in the config, and writes nothing', async () => {
  const { store, state } = await anArchive();

  const opened = aWriter({ store, sink: 'second', sinks: ['first', 'second'] });
  await expect(opened).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining('the sink first wrote its last pages'),
  });

  const again = await aWriter({ store, state, sink: 'first', sinks: ['first', 'second'] });
  expect(again.place).toEqual({ spool: 'spool-1', epoch: 1, next: 9 });
  await again.close();
});

test('another sink that has signed an archive elsewhere is refused, also if the first is gone', async () => {
  const { store } = await anArchive();
  const state = await aMark();

  const opened = aWriter({ store, state, sink: 'second', sinks: ['second'] });
  await expect(opened).rejects.toMatchObject({ code: 'sink_refused' });
});

test('a renamed sink continues, also after a start without pages, and after it has its old name again', async () => {
  const { store, state } = await anArchive();
  const renamed: State = { mark: null };
  const second = { store, state: renamed, sink: 'second', sinks: ['second'] };

  await (await aWriter(second)).close();
  const writer = await aWriter(second);
  await archived(writer, heldPages(1, 9));
  await writer.close();
  const last = await aWriter({ store, state, sink: 'first', sinks: ['first'] });

  expect(last.place?.next).toBe(12);
  await last.close();
});

test('another state, and an archive that names no sink, are no other sink', async () => {
  const { store } = await anArchive();
  const other = await aWriter({ store, spool: 'spool-2', sink: 'second', sinks: ['first'] });
  expect(other.place?.spool).toBe('spool-1');
  await other.close();

  const older = openDirectory(tempDir());
  const before = await aWriter({ store: older });
  await archived(before, heldPages(1));
  await before.close();
  const writer = await aWriter({ store: older, sink: 'second', sinks: ['first', 'second'] });
  expect(writer.place?.next).toBe(3);
  await writer.close();
});

test('two swapped locations are refused, and lose nothing once they are swapped back', async () => {
  const dir = tempDir();
  const key = signingKeyText('swapped', Buffer.alloc(32, 1));
  const { upstreams, env, grow } = await someEdges(['east', 'west'], 20, { KEY: key });
  const config = join(dir, 'sluice.yaml');
  const write = (east: string, west: string) => {
    const sink = (location: string) =>
      `{ type: archive, location: ${dir}/${location}, signing_key: "\${env:KEY}", checkpoint_every: 1s, lake: { every: 1s } }`;
    const text = `state: { dir: ${dir}/state }
${upstreams}
sources:
  east: { type: audit_events, upstream: east, every: 200ms }
  west: { type: audit_events, upstream: west, every: 200ms }
sinks:
  one: ${sink(east)}
  two: ${sink(west)}
routes:
  - { from: [east], to: [one] }
  - { from: [west], to: [two] }
`;
    writeFileSync(config, text);
  };
  write('x', 'y');
  const first = await runOnceHere(config, env);

  write('y', 'x');
  grow(20);
  const swapped = startSluice(['run', '-c', config], { env });
  await swapped.waitForLine((line) => line.includes('the sink one wrote its last pages'));
  await swapped.waitForLine((line) => line.includes('the sink two wrote its last pages'));
  await swapped.waitForLine(
    (line) => line.includes('one.lake') && line.includes('writing the lake'),
  );
  await swapped.kill();
  write('x', 'y');
  const back = await runOnceHere(config, env);

  expect([first.exitCode, back.exitCode]).toEqual([0, 0]);
  for (const location of ['x', 'y']) {
    const args = [
      'archive',
      'verify',
      join(dir, location),
      '--key',
      parseSigningKey(key).verifier.vkey,
      '--json',
    ];
    const { stdout } = await runHere(args);
    const { records, remarks } = JSON.parse(stdout);
    const ofLake = remarks.filter((one: string) => one.includes('lake'));
    // The lake has the events of all pages, and no others.
    expect([records, ofLake]).toEqual([40, [expect.stringMatching(/^the lake: 40 events/)]]);
  }
});
