// Cosignatures of witnesses: a real one (transparency-dev's) sees every checkpoint grow from the one before, and its
// signatures are verified offline. A witness that is down, slow or hostile delays nothing, and its responses do not
// count.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { archiveSink } from '../../connectors/sinks/archive.ts';
import { parseWitnessKey, signingKeyText } from '../../src/archive/note.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { aSetup } from '../commands/a-setup.ts';
import { type RunningWitness, startWitness } from '../support/archive/oracles.ts';
import { runHere, runOnceHere } from '../support/cli.ts';
import { type HttpAnswer, startHttpReceiver } from '../support/http-receiver.ts';
import { testSome } from '../support/long.ts';
import { openSink, someEvents, testTools } from '../support/sink-opening.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { aSigner } from './a-writer.ts';
import { anchorsIn, sent, verified } from './anchored.ts';

const log = aSigner().verifier.vkey;

const settingsOf = (location: string, witnesses: readonly RunningWitness[]) => ({
  location,
  signing_key: signingKeyText('archive.test', Buffer.alloc(32, 1)),
  checkpoint_every: '1h',
  witnesses: witnesses.map(({ url, vkey }) => ({ url, key: vkey })),
});

/** Tools whose clock jumps by an hour at each look, so that every checkpoint is sent to witnesses. */
function hurriedTools() {
  const clock = systemClock();
  let looks = 0;
  return testTools({
    ...clock,
    monotonic() {
      looks += 1;
      return clock.monotonic() + looks * 3_600_000;
    },
  });
}

/** Three checkpoints of an archive, each seen before the next is made. */
async function cosigned(witnesses: readonly RunningWitness[]): Promise<string> {
  const location = join(tempDir(), 'archive');
  const tools = hurriedTools();
  const { sink, batch } = await openSink(archiveSink, settingsOf(location, witnesses), { tools });
  for (const count of [1, 2]) {
    await sent(sink, batch(someEvents(2, 2 * count)));
    await waitUntil(() => anchorsIn(location, 'cosig').length === count, { what: 'a cosignature' });
  }
  await sink.close();
  return location;
}

const judgedBy = (witnesses: readonly RunningWitness[], quorum = witnesses.length) => ({
  witnesses: { keys: witnesses.map(({ vkey }) => parseWitnessKey(vkey)), quorum },
});

async function twoWitnesses(context: TestContext) {
  return [
    await startWitness(context, { name: 'witness.one', log }),
    await startWitness(context, { name: 'witness.two', log }),
  ] as const;
}

test('a real witness cosigns every checkpoint, and that is judged offline', async (context) => {
  const witnesses = await twoWitnesses(context);
  const location = await cosigned(witnesses);

  const report = await verified(location, judgedBy(witnesses));
  const stranger = await startWitness(context, { log });
  const one = await verified(location, judgedBy([...witnesses, stranger], 2));
  const all = await verified(location, judgedBy([...witnesses, stranger]));
  const unjudged = await verified(location);

  expect(report).toMatchObject({ breaks: [], cosigned: 3 });
  expect(report.cosignature).toMatchObject({
    size: report.size,
    by: ['witness.one', 'witness.two'],
  });
  expect(Math.abs((report.cosignature?.at ?? 0) - Date.now())).toBeLessThan(600_000);
  expect(one).toMatchObject({ breaks: [], cosigned: 3 });
  expect(all.breaks.map(({ what }) => what)).toEqual([
    'no checkpoint is cosigned by 3 of the witnesses that were given',
  ]);
  expect(unjudged.remarks.join()).toContain('3 checkpoints with cosignatures were kept');
});

test('a writer that restarts from nothing resumes from the size that its witness has seen', async (context) => {
  const witnesses = [await startWitness(context, { log })];
  const location = await cosigned(witnesses);
  const { sink, batch, tools } = await openSink(archiveSink, settingsOf(location, witnesses));

  await sent(sink, batch(someEvents(2, 8)));
  await waitUntil(() => anchorsIn(location, 'cosig').length === 4, { what: 'a cosignature' });

  expect(tools.logged).toEqual([]);
  expect(await verified(location, judgedBy(witnesses))).toMatchObject({ breaks: [] });
});

test('a witness that has seen more than the archive has reports that it was put back', async (context) => {
  const witnesses = [await startWitness(context, { log })];
  await cosigned(witnesses);
  const older = join(tempDir(), 'archive');
  const { sink, batch } = await openSink(archiveSink, settingsOf(older, witnesses));

  await sent(sink, batch(someEvents(1)));
  const notice = await waitUntil(() => sink.notice?.(), { what: 'a notice' });

  expect(notice.what).toMatch(/it has seen \d+ entries of this log, and the archive has \d/);
  expect(notice.next).toContain('verify the archive');
  expect(anchorsIn(older, 'cosig')).toEqual([]);
});

test('another history of the same length is not cosigned', async (context) => {
  const witnesses = [await startWitness(context, { log })];
  await cosigned(witnesses);
  const forged = join(tempDir(), 'archive');
  const { sink, batch } = await openSink(archiveSink, settingsOf(forged, witnesses));

  const notices: (string | undefined)[] = [];
  for (let at = 0; at < 12; at += 1) await sent(sink, batch(someEvents(1, at)));
  await sink.close();
  notices.push(sink.notice?.()?.what);

  expect(notices.join()).toMatch(/another history of this log|has seen \d+ entries/);
  expect(anchorsIn(forged, 'cosig')).toEqual([]);
});

const hostile: readonly (readonly [string, (line: string) => HttpAnswer, RegExp])[] = [
  [
    'HTML',
    () => ({ answer: 'reply', status: 200, body: '<html>signed</html>' }),
    /signed note|damaged/,
  ],
  ['nothing', () => ({ answer: 'reply', status: 200, body: '' }), /signature|signed note/],
  [
    'a signature of another text',
    (line) => ({ answer: 'reply', status: 200, body: line }),
    /is wrong/,
  ],
  [
    'a text below its signature',
    (line) => ({ answer: 'reply', status: 200, body: `${line}\nmore\n` }),
    /damaged/,
  ],
  [
    'a size without its type',
    () => ({ answer: 'reply', status: 409, body: '1' }),
    /without a size/,
  ],
  [
    'a size that is none',
    () => ({
      answer: 'reply',
      status: 409,
      headers: { 'content-type': 'text/x.tlog.size' },
      body: '-1e9',
    }),
    /without a size/,
  ],
  [
    'an old size for ever',
    () => ({
      answer: 'reply',
      status: 409,
      headers: { 'content-type': 'text/x.tlog.size' },
      body: '1\n',
    }),
    /again and again/,
  ],
  [
    'a size beyond all numbers',
    () => ({
      answer: 'reply',
      status: 409,
      headers: { 'content-type': 'text/x.tlog.size' },
      body: '999999999999999\n',
    }),
    /it has seen 999999999999999/,
  ],
  ['that it knows no such log', () => ({ answer: 'reply', status: 404 }), /does not know this log/],
  [
    'a redirect',
    () => ({ answer: 'reply', status: 302, headers: { location: 'http://127.0.0.1:1' } }),
    /302/,
  ],
  ['an error', () => ({ answer: 'reply', status: 500 }), /500/],
  ['half an answer', () => ({ answer: 'cut' }), /./],
  ['a reset', () => ({ answer: 'reset' }), /./],
];

testSome(4, hostile)(
  'a witness that answers %s is reported, and does not affect another',
  async (...given) => {
    const [, answer, text] = given;
    const context = given.at(-1) as unknown as TestContext;
    const real = await startWitness(context, { name: 'witness.real', log });
    const other = await startWitness(context, { name: 'witness.other', log });
    // A line that is the key's, over another checkpoint.
    const before = await cosigned([other]);
    const [, line = ''] = readFileSync(anchorsIn(before, 'cosig')[0] ?? '', 'utf8').split(
      /(?=— witness)/,
    );
    const receiver = await startHttpReceiver({ answer: async () => answer(line) });
    const location = join(tempDir(), 'archive');
    const witnesses = [real, { url: receiver.url, vkey: other.vkey }];
    const { sink, batch } = await openSink(archiveSink, settingsOf(location, witnesses));

    await sent(sink, batch(someEvents(1)));
    const notice = await waitUntil(() => sink.notice?.(), { what: 'a notice' });
    await sink.close();

    expect(notice.what).toContain('requesting a cosignature from the witness witness.other');
    expect(notice.what).toMatch(text);
    expect(anchorsIn(location, 'cosig').length).toBeGreaterThan(0);
    expect(await verified(location, judgedBy([real]))).toMatchObject({ breaks: [] });
    expect((await verified(location, judgedBy([other]))).breaks).toHaveLength(1);
  },
);

test('a witness that hangs takes nothing from another, also at the end', async (context) => {
  const real = await startWitness(context, { name: 'witness.real', log });
  const receiver = await startHttpReceiver({ answer: async () => ({ answer: 'hang' }) });
  const location = join(tempDir(), 'archive');
  const slow = { url: receiver.url, vkey: real.vkey.replace('witness.real', 'witness.real') };
  const { sink, batch } = await openSink(archiveSink, settingsOf(location, [real, slow]));

  await sent(sink, batch(someEvents(1)));
  await sink.close();

  expect(await verified(location, judgedBy([real]))).toMatchObject({ breaks: [], cosigned: 1 });
});

test('cosignatures that were tampered with are found', async (context) => {
  const witnesses = [await startWitness(context, { log })];
  const location = await cosigned(witnesses);
  const [first = '', , last = ''] = anchorsIn(location, 'cosig');
  const good = readFileSync(first);
  const whats = async () =>
    (await verified(location, judgedBy(witnesses))).breaks.map(
      ({ index, what }) => `${index} ${what}`,
    );

  rmSync(first);
  const missing = await whats();
  writeFileSync(first, readFileSync(last));
  const another = await whats();
  writeFileSync(first, good);
  const text = readFileSync(last, 'utf8');
  writeFileSync(
    last,
    text.replace(
      /(— witness\.test .{40})(.)/,
      (_, head, one) => `${head}${one === 'A' ? 'B' : 'A'}`,
    ),
  );
  const wrong = await whats();

  expect(missing).toEqual([expect.stringMatching(/^\d+ .*it is missing/)]);
  expect(another).toEqual([expect.stringMatching(/^\d+ .*it was changed/)]);
  expect(wrong).toEqual([expect.stringMatching(/^null .*signature of witness\.test.* is wrong/)]);
});

test('the program has its checkpoints cosigned, and judges that offline', async (context) => {
  const dir = tempDir();
  const keyFile = join(dir, 'key');
  const made = await runHere(['archive', 'keys', 'new', keyFile]);
  const vkey = made.stdout.trim().split('\n').at(-1) ?? '';
  const { url, vkey: key } = await startWitness(context, { log: vkey });
  const { config } = await aSetup({
    sinks: [
      '  proof:',
      '    type: archive',
      `    location: ${dir}/archive`,
      `    signing_key: "\${file:${keyFile}}"`,
      `    witnesses: [ { url: "${url}", key: "${key}" } ]`,
      `  disk: { type: file, path: ${dir}/events.ndjson }`,
    ],
  });
  const stranger = await startWitness(context, { log: vkey });

  const runs = [await runOnceHere(config), await runOnceHere(config)];
  const verify = ['archive', 'verify', `${dir}/archive`, '--key', vkey, '--witness', key];
  const judged = await runHere([...verify, '--quorum', '1', '--seen-within', '1h']);
  const wrong = await runHere([...verify, '--quorum', '2']);
  const [line = ''] = readFileSync(`${dir}/events.ndjson`, 'utf8').split('\n', 1);
  const record = ['--record', `${dir}/record`];
  const proof = ['archive', 'prove', `${dir}/archive`, '--uid', JSON.parse(line).metadata.uid];
  writeFileSync(`${dir}/proof`, (await runHere([...proof, ...record])).stdout);
  const checking = [
    'archive',
    'check-proof',
    `${dir}/proof`,
    ...record,
    '--key',
    vkey,
    '--witness',
  ];
  const checked = await runHere([...checking, key]);
  const unseen = await runHere([...checking, stranger.vkey]);
  const all = ['--from', '2000-01-01T00:00:00Z', '--to', '2100-01-01T00:00:00Z'];
  await runHere(['archive', 'export', `${dir}/archive`, ...all, '--out', `${dir}/copy`]);
  const copied = anchorsIn(`${dir}/copy`, 'cosig').length;

  expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  expect(judged).toMatchObject({ exitCode: 0, stderr: '' });
  expect(judged.stdout).toMatch(/entries existed at .*, as witness\.test says/);
  expect(wrong.exitCode).toBe(64);
  expect(checked).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('cosigned by witness.test'),
  });
  expect(unseen).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('FALSE: ') });
  expect(copied).toBe(anchorsIn(`${dir}/archive`, 'cosig').length);
});
