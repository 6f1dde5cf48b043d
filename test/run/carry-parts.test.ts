// What a sink has noted, where a state is carried into shards or out of them.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { parseConfig } from '../../src/config/config.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { carrying } from '../../src/run/carry-parts.ts';
import { archived, aWriter, heldPages, type State } from '../archive/a-writer.ts';
import { tempDir } from '../support/temp.ts';

const config = parseConfig(
  `upstreams: { edge: { api: unified, base_url: https://api.example, auth: { client_id: i, client_secret: s, scope: x } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks:
  proof: { type: archive, location: ./archive, signing_key: "\${env:KEY}" }
  disk: { type: file, path: ./out.ndjson, format: json }
  post: { type: http, url: "https://siem.example", format: json }`,
  join(tempDir(), 'c.yaml'),
  { env: { KEY: signingKeyText('archive.test', Buffer.alloc(32, 1)) } },
);

test('an archive keeps only which logs have its streams, and a sink without its own location keeps its note', async () => {
  const state: State = { mark: null };
  const writer = await aWriter({ store: openDirectory(join(tempDir(), 'archive')), state });
  await archived(writer, heldPages(2));
  await writer.close();
  const marks = state.mark === null ? [] : [state.mark];
  const into = carrying(config, { isWhole: true });
  const out = carrying(config, { isWhole: false });

  const moved = {
    moved: [{ origin: 'archive.test', streams: { audit: [2, expect.any(String)] } }],
  };
  expect(into.markOf('proof', marks)).toMatchObject(moved);
  expect(out.markOf('proof', marks)).toMatchObject(moved);
  expect(into.markOf('proof', [])).toBeNull();
  expect([into.markOf('disk', marks), into.markOf('gone', marks)]).toEqual([null, null]);
  expect(into.markOf('post', ['a note'])).toBe('a note');
  expect(out.markOf('post', ['a note'])).toBeNull();
});
