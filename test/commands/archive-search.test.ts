// `sluice archive search` over an archive whose lake has a part of its events, and over the rest.

import { copyFileSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import type { JsonObject } from '../../src/contracts/json.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { DecodedPage, normalisersOf } from '../../src/send/held-event.ts';
import {
  archived,
  aSigner,
  aSigningKey,
  aWriter,
  heldPages,
  type State,
} from '../archive/a-writer.ts';
import { runHere } from '../support/cli.ts';
import { openSink } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';

const config = `
upstreams: { edge: { api: unified, ends: never, product: audit, base_url: "https://edge.example/v1", auth: { api_key: k } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks: { screen: { type: stdout } }
`;

const eventsOf = (pages: readonly HeldPage[]) => {
  const normaliserOf = normalisersOf([]);
  return pages.flatMap((page) => new DecodedPage(page, normaliserOf(page.context)).events);
};

/** An archive of 12 events, of which its lake has the first 9. */
async function anArchive() {
  const location = tempDir();
  const pages = heldPages(4);
  const state: State = { mark: null };
  const writer = await aWriter({ store: openDirectory(location), state });
  await archived(writer, pages);
  await writer.close();
  const { sink, batch } = await openSink(lakeSink, {
    ...{ location, every: 3_600_000, signing_key: aSigningKey() },
  });
  const sending = sink.send(batch(eventsOf(pages.slice(0, 3))), new AbortController().signal);
  sink.flush?.();
  expect((await sending).outcome).toBe('delivered');
  await sink.close();
  // It enters the cut.
  await (await aWriter({ store: openDirectory(location), state })).close();
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(file, config);
  const search = async (...more: readonly string[]) => {
    const { stdout, stderr, exitCode } = await runHere([
      ...['archive', 'search', location, '--key', aSigner().verifier.vkey, ...more],
    ]);
    const found = stdout.split('\n').filter(Boolean);
    return { found: found.map((line) => JSON.parse(line) as JsonObject), stderr, exitCode };
  };
  return { location, search, file, ocsf: eventsOf(pages).map((event) => event.ocsf) };
}

const byUid = (events: readonly unknown[]) =>
  (JSON.parse(JSON.stringify(events)) as { metadata: { uid: string } }[]).toSorted((a, b) =>
    a.metadata.uid < b.metadata.uid ? -1 : 1,
  );

test('without a config the lake’s events are shown, and later pages are reported as not searched', async () => {
  const { search, ocsf } = await anArchive();

  const { found, stderr, exitCode } = await search();

  expect(byUid(found)).toEqual(byUid(ocsf.slice(0, 9)));
  expect(stderr).toMatch(/not looked at: 1 page /);
  expect(exitCode).toBe(0);
});

test('with a config each event is shown once, from the lake or from its page', async () => {
  const { search, ocsf, file } = await anArchive();

  const { found, stderr } = await search('-c', file);

  expect(byUid(found)).toEqual(byUid(ocsf));
  expect(stderr).toBe('');
});

test('a filter and times exclude events that do not match, and events on which the filter fails', async () => {
  const { search, ocsf, file } = await anArchive();
  const uid = ocsf[4]?.metadata.uid;
  const at = '2026-11-01T00:00:00Z';

  const one = await search('-c', file, '--where', `event.metadata.uid == "${uid}"`);
  const some = await search('-c', file, '--where', `event.metadata.uid in ["${uid}", "none"]`);
  const none = await search('-c', file, '--where', 'event.nothing.at == "all"');
  const inTime = await search('-c', file, '--from', at, '--to', '2026-11-01T00:00:01Z');
  const before = await search('-c', file, '--to', at);

  expect(byUid(one.found)).toEqual(byUid([ocsf[4]]));
  expect(some.found).toEqual(one.found);
  expect(none.found).toEqual([]);
  expect(inTime.found.length).toBe(12);
  expect(before.found).toEqual([]);
});

test('a filter that is none is wrong use', async () => {
  const { search } = await anArchive();

  const { exitCode, stderr } = await search('--where', 'event.(');

  expect(exitCode).toBe(64);
  expect(stderr).toContain('--where');
});

describe('an attacker who can write to the archive', () => {
  /** Files of a lake by their ending. */
  const within = (location: string, ending: string) =>
    readdirSync(join(location, 'lake'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith(ending))
      .map((name) => join(location, 'lake', name));

  test('adds an object and a cut that no entry names: neither is read', async () => {
    const { location, search, ocsf } = await anArchive();
    const [object = ''] = within(location, '.parquet');
    const other = object.replace(/eventDay=\d{8}/, 'eventDay=20200101');
    mkdirSync(dirname(other), { recursive: true });
    copyFileSync(object, other);
    const [cut = ''] = within(location, '.cut');
    writeFileSync(cut.replace(/[^/]+$/, '9999999999999-0000000000000000.cut'), 'no cut');

    const { found, exitCode } = await search();

    expect(byUid(found)).toEqual(byUid(ocsf.slice(0, 9)));
    expect(exitCode).toBe(0);
  });

  test.each([
    ['removes an object', (path: string) => rmSync(path), 'is missing'],
    ['truncates an object', (path: string) => truncateSync(path, 700), 'differs from its entry'],
    ['extends an object', (path: string) => truncateSync(path, 2 ** 31), 'differs from its entry'],
  ])('%s: the command names it', async (_, change, what) => {
    const { location, search } = await anArchive();
    const [object = ''] = within(location, '.parquet');
    change(object);

    const { stderr, exitCode } = await search();

    expect(exitCode).toBe(1);
    expect(stderr).toContain(`${object.slice(location.length + 1)} ${what}`);
    expect(stderr).not.toContain('a fault in sluice');
  });
});
