// Time stamps of checkpoints: sluice reads the output of `openssl ts`, and `openssl ts` reads sluice's; an invalid
// stamp proves nothing. An authority that fails delays nothing.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { archiveSink } from '../../connectors/sinks/archive.ts';
import { authoritiesIn, checkStamp, stampQuery } from '../../src/archive/anchors/time-stamp.ts';
import { signingKeyText } from '../../src/archive/note.ts';
import type { VerifyOptions } from '../../src/archive/verify/verify.ts';
import { aSetup } from '../commands/a-setup.ts';
import {
  startTimeStampAuthority,
  type TimeStampAuthority,
} from '../support/archive/time-stamp-authority.ts';
import { runProgram } from '../support/children.ts';
import { runHere, runOnceHere } from '../support/cli.ts';
import { openSink, someEvents } from '../support/sink-opening.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { anchorsIn, sent, verified } from './anchored.ts';

const authoritiesOf = ({ caFile }: Pick<TimeStampAuthority, 'caFile'>) =>
  authoritiesIn(readFileSync(caFile, 'utf8'));
const data = Buffer.from('a checkpoint');

describe('a stamp of openssl', () => {
  test.each([
    ['an elliptic curve', {}],
    ['RSA', { key: ['rsa:2048'] }],
    ['SHA-1 naming the certificate', { config: ['ess_cert_id_alg=sha1'] }],
    ['SHA-512 as digest', { config: ['signer_digest=sha512'] }],
    ['the chain named as well', { config: ['ess_cert_id_chain=yes', 'ordering=yes'] }],
  ])('with %s is believed, and of nothing else', async (_, wishes) => {
    const tsa = await startTimeStampAuthority(wishes);
    const stamp = await tsa.stamp(data);
    const authorities = authoritiesOf(tsa);

    const { at, by } = checkStamp(stamp, data, { authorities });

    expect(Math.abs(at - Date.now())).toBeLessThan(600_000);
    expect(by).toBe('O=test, CN=tsa');
    expect(() => checkStamp(stamp, Buffer.from('another'), { authorities })).toThrow(
      'of something else',
    );
    const nonce = Buffer.alloc(16);
    expect(() => checkStamp(stamp, data, { authorities, nonce })).toThrow('another question');
  });

  test.each([
    ['nothing wrong', {}, null],
    ['a certificate that had ended', { days: -1 }, /was not valid at/],
    [
      'a key for other things as well',
      { extensions: ['extendedKeyUsage=critical,timeStamping,serverAuth'] },
      /not one for time stamps/,
    ],
    [
      'a purpose that is not critical',
      { extensions: ['extendedKeyUsage=timeStamping'] },
      /not one for time stamps/,
    ],
    [
      'a key without a purpose',
      { extensions: ['basicConstraints=CA:FALSE'] },
      /not one for time stamps/,
    ],
  ] as const)('that was signed again with %s is judged by that', async (_, wishes, text) => {
    const other = await startTimeStampAuthority(wishes);
    const stamp = await other.sign(await (await startTimeStampAuthority()).stamp(data));
    const check = () => checkStamp(stamp, data, { authorities: authoritiesOf(other) });

    if (text === null) expect(check().by).toBe('O=test, CN=tsa');
    else expect(check).toThrow(text);
  });

  test('with any bit changed is refused, or says the same', async () => {
    const tsa = await startTimeStampAuthority();
    const stamp = await tsa.stamp(data);
    const deps = { authorities: authoritiesOf(tsa) };
    const whole = checkStamp(stamp, data, deps);
    let refused = 0;

    for (let bit = 0; bit < stamp.length * 8; bit += 3) {
      const changed = Buffer.from(stamp);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      try {
        expect(checkStamp(changed, data, deps)).toEqual(whole);
      } catch (error) {
        expect(error).toBeInstanceOf(SyntaxError);
        refused += 1;
      }
    }

    expect(refused).toBeGreaterThan(stamp.length * 2);
  });

  test('is requested as openssl does', async () => {
    const file = join(tempDir(), 'query');
    writeFileSync(file, stampQuery(data, Buffer.alloc(16, 0xff)));

    const { output } = await runProgram('openssl', ['ts', '-query', '-in', file, '-text']);

    expect(output).toContain('Hash Algorithm: sha256');
    expect(output).toContain(`Nonce: 0x01${'FF'.repeat(16)}`);
    expect(output).toContain('Certificate required: yes');
  });
});

const settingsOf = (location: string, tsa: TimeStampAuthority) => ({
  location,
  signing_key: signingKeyText('archive.test', Buffer.alloc(32, 1)),
  checkpoint_every: '1h',
  tsa: { url: tsa.url, ca_file: tsa.caFile, every: '0s' },
});

/** An archive of two batches, with three stamps of which the first two stand in entries. */
async function stamped(tsa: TimeStampAuthority): Promise<string> {
  const location = join(tempDir(), 'archive');
  const { sink, batch } = await openSink(archiveSink, settingsOf(location, tsa));
  await sent(sink, batch(someEvents(2)));
  await waitUntil(() => anchorsIn(location, 'tsr').length === 1, { what: 'the first stamp' });
  await sent(sink, batch(someEvents(2, 2)));
  await waitUntil(() => anchorsIn(location, 'tsr').length === 2, { what: 'the second stamp' });
  await sink.close();
  return location;
}

describe('an archive', () => {
  test('keeps stamps that openssl verifies, and reports the times that they prove', async () => {
    const tsa = await startTimeStampAuthority();
    const location = await stamped(tsa);
    const files = anchorsIn(location, 'tsr');

    const read = await Promise.all(
      files.map((file) => tsa.verify(file.replace(/tsr$/, 'note'), file)),
    );
    const report = await verified(location, { authorities: authoritiesOf(tsa) });
    const without = await verified(location);

    expect(read.map(({ output }) => output.trim())).toEqual(Array(3).fill('Verification: OK'));
    expect(report).toMatchObject({ breaks: [], stamps: 3 });
    expect(report.stamp).toMatchObject({ size: report.size, by: ['O=test, CN=tsa'] });
    expect(without).toMatchObject({ breaks: [], stamps: 0, stamp: null });
    expect(without.remarks.join()).toContain('3 time stamps were kept, and not judged');
  });

  test('continues while the authority fails, reports the failure, and has the next one stamped', async () => {
    const tsa = await startTimeStampAuthority();
    const location = join(tempDir(), 'archive');
    const { sink, batch, tools } = await openSink(archiveSink, settingsOf(location, tsa));
    const answers = [
      { answer: 'reply', status: 500 },
      { answer: 'reply', status: 200, body: '<html>' },
      { answer: 'reply', status: 200, body: await tsa.stamp(data) },
      { answer: 'reset' },
    ] as const;
    for (const [i, answer] of answers.entries()) {
      tsa.receiver.answer(answer);
      await sent(sink, batch(someEvents(1, i)));
      await waitUntil(() => tools.logged.length > i, { what: `failure ${i}` });
    }
    const notice = sink.notice?.();
    tsa.receiver.answer(tsa.stamps);
    await sent(sink, batch(someEvents(1, answers.length)));
    await waitUntil(() => anchorsIn(location, 'tsr').length === 1, { what: 'a stamp' });
    await waitUntil(() => sink.notice?.() === null, { what: 'no notice any more' });

    expect(notice?.what).toContain('time-stamp authority');
    const reasons = tools.logged.map(({ fields }) => String(fields.error));
    expect(reasons[0]).toContain('answered 500');
    expect(reasons[1]).toContain('no answer of a time-stamp authority');
    expect(reasons[2]).toContain('of something else');
  });

  test('is stamped at the end by an authority that failed before', async () => {
    const tsa = await startTimeStampAuthority();
    const location = join(tempDir(), 'archive');
    const { sink, batch, tools } = await openSink(archiveSink, settingsOf(location, tsa));
    tsa.receiver.answer({ answer: 'reset' });
    await sent(sink, batch(someEvents(1)));
    await waitUntil(() => tools.logged.length === 1, { what: 'the failure' });
    tsa.receiver.answer(tsa.stamps);

    await sink.close();

    expect(await verified(location, { authorities: authoritiesOf(tsa) })).toMatchObject({
      breaks: [],
      stamps: 1,
    });
  });

  test('enters the last stamp of a process with the next one', async () => {
    const tsa = await startTimeStampAuthority();
    const location = await stamped(tsa);
    const [, , last = ''] = anchorsIn(location, 'tsr');
    const { sink, batch } = await openSink(archiveSink, settingsOf(location, tsa));
    await sent(sink, batch(someEvents(1, 4)));
    await sink.close();

    rmSync(last);

    const { breaks } = await verified(location);
    expect(breaks.map(({ what }) => what)).toEqual([expect.stringContaining('it is missing')]);
  });

  test('is closed also where the authority hangs', async () => {
    const tsa = await startTimeStampAuthority();
    tsa.receiver.answer({ answer: 'hang' });
    const location = join(tempDir(), 'archive');
    const { sink, batch } = await openSink(archiveSink, settingsOf(location, tsa));
    await sent(sink, batch(someEvents(1)));

    await sink.close();

    expect(await verified(location)).toMatchObject({ breaks: [] });
  });

  test('that was tampered with is found by its stamps', async () => {
    const tsa = await startTimeStampAuthority();
    const location = await stamped(tsa);
    const [first = '', , last = ''] = anchorsIn(location, 'tsr');
    const authorities = authoritiesOf(tsa);
    const foreign = authoritiesOf(await startTimeStampAuthority());
    const good = readFileSync(first);
    const whats = async (options: Partial<VerifyOptions>) =>
      (await verified(location, options)).breaks.map(({ index, what }) => `${index} ${what}`);

    const byForeign = await whats({ authorities: foreign });
    writeFileSync(first, await tsa.stamp(data));
    const changed = await whats({});
    rmSync(first);
    const missing = await whats({});
    writeFileSync(first, good);
    writeFileSync(last, await tsa.stamp(data));
    const newest = await whats({ authorities });
    rmSync(last);
    const stale = await whats({ authorities, seenSince: Date.now() + 60_000 });

    expect(byForeign.join()).toContain('the stamp is not signed by a trusted authority');
    expect(byForeign.join()).toContain('no time stamp of a given authority');
    expect(changed).toEqual([expect.stringMatching(/^\d+ .*it was changed/)]);
    expect(missing).toEqual([expect.stringMatching(/^\d+ .*it is missing/)]);
    expect(newest).toEqual([expect.stringMatching(/^null .*the stamp is of something else/)]);
    expect(stale).toEqual([expect.stringMatching(/an older state was restored/)]);
  });

  test('of which an older state was put back is found by a stamp that is newer', async () => {
    const tsa = await startTimeStampAuthority();
    const location = await stamped(tsa);
    const [, , last = ''] = anchorsIn(location, 'tsr');
    const note = last.replace(/tsr$/, 'note');
    const older = readdirSync(join(location, 'checkpoints'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.note'))
      .sort();
    writeFileSync(
      join(location, 'checkpoint'),
      readFileSync(join(location, 'checkpoints', older[0] ?? '')),
    );
    rmSync(note);

    const { breaks } = await verified(location);

    expect(breaks.map(({ what }) => what).join()).toContain('was seen outside');
  });
});

test('the program has its checkpoints stamped, and verifies them offline', async () => {
  const tsa = await startTimeStampAuthority();
  const dir = tempDir();
  const keyFile = join(dir, 'key');
  const made = await runHere(['archive', 'keys', 'new', keyFile]);
  const vkey = made.stdout.trim().split('\n').at(-1) ?? '';
  const { config } = await aSetup({
    sinks: [
      '  proof:',
      '    type: archive',
      `    location: ${dir}/archive`,
      `    signing_key: "\${file:${keyFile}}"`,
      `    tsa: { url: "${tsa.url}", ca_file: ${tsa.caFile} }`,
    ],
  });

  const run = await runOnceHere(config);
  await tsa.receiver.close();
  const verify = ['archive', 'verify', `${dir}/archive`, '--key', vkey, '--tsa', tsa.caFile];
  const fresh = await runHere([...verify, '--seen-within', '1h']);
  const stale = await runHere([...verify, '--seen-within', '0s']);

  expect(run.exitCode).toBe(0);
  expect(fresh).toMatchObject({ exitCode: 0, stderr: '' });
  expect(fresh.stdout).toMatch(
    /entries existed at .*, as O=test, CN=tsa says; \d time stamps? in all/,
  );
  expect(stale.exitCode).toBe(1);
});
