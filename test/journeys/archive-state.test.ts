// An archive beside a state that is older, lost, or another's, and a state beside an archive that is gone, moved or
// another's: the real program, killed at random. Nothing is lost, the archive proves itself, and a fault is reported
// before anything is written.

import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { aSigner, readArchive } from '../archive/a-writer.ts';
import { aJourney } from '../support/a-journey.ts';
import { endChild, spawnChild } from '../support/children.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';
import { canMountTmpfs } from '../support/tmpfs.ts';

const firstEvents = 200;
const mainFile = new URL('../../src/boot/sluice.js', import.meta.url).pathname;

async function anArchiveJourney() {
  const wishes = { events: firstEvents, source: 'every: 200ms, page_limit: 20' };
  const { at, configure: write, env, grow, start, once } = await aJourney(wishes);
  const places = { archive: 'archive', state: 'state', origin: 'archive.test', lake: '' };
  const configure = (set: Partial<typeof places> = {}) => {
    const { archive, state, origin, lake } = { ...places, ...set };
    writeFileSync(at(origin), signingKeyText(origin, Buffer.alloc(32, 1)));
    const sinks = `  proof:
    type: archive
    location: ${at(archive)}
    signing_key: "\${file:${at(origin)}}"
    checkpoint_every: 100ms
    ${lake}
    retry: { min: 50ms, max: 1s }`;
    return write(`${archive}-${state}-${origin}`.replaceAll('/', '-'), { state, sinks });
  };
  /** Of upstream's records; throws where the archive does not prove itself. */
  const archived = async (archive = 'archive') => new Set((await readArchive(at(archive))).uids);
  return {
    ...{ at, configure, archived, once, grow, start, env },
    /** Runs until the archive has so many events, and ends it by SIGKILL. */
    async killedAt(count: number, config: string) {
      const sluice = start(config);
      const has = async () => (await archived().catch(() => new Set())).size >= count;
      const what = () => `${count} events archived; ${sluice.stderr.slice(-5).join('\n')}`;
      await waitUntil(has, { what });
      await sluice.kill('SIGKILL');
    },
    /** Runs until it refuses, in these words. */
    async refusal(config: string, ...words: readonly string[]) {
      const sluice = startSluice(['run', '-c', config, '--once'], { env });
      for (const some of words) await sluice.waitForLine(some);
      await sluice.kill('SIGTERM');
    },
    putBack(copy: string, state = 'state') {
      rmSync(at(state), { recursive: true });
      renameSync(at(copy), at(state));
    },
    copy: (to: string, from = 'state') => cpSync(at(from), at(to), { recursive: true }),
  };
}

test('a state that is older, by a copy or a lost log of its database, or lost: it resumes after the archive’s end', {
  tags: ['long'],
}, async () => {
  const { at, configure, archived, once, grow, killedAt, putBack, copy } = await anArchiveJourney();
  const config = configure();
  await killedAt(firstEvents, config);
  copy('older');
  grow(100);
  await killedAt(firstEvents + 100, config);
  grow(50);
  putBack('older');
  const restored = await once(config);
  const afterRestore = await archived();
  grow(50);
  await killedAt(firstEvents + 200, config);
  rmSync(at('state/sluice.db-wal'), { force: true });
  const cut = await once(config);
  rmSync(at('state'), { recursive: true });
  const lost = await once(config);

  for (const { exitCode, stderr } of [restored, cut, lost]) {
    expect([exitCode, stderr.includes('state_older')]).toEqual([0, true]);
  }
  expect(afterRestore.size).toBe(firstEvents + 150);
  // sluice's own event, that the state is older, is stored as well.
  expect((await archived()).size).toBeGreaterThanOrEqual(firstEvents + 200);
});

test('a clock that goes back over midnight, beside a copy of the state from before', {
  tags: ['long'],
}, async () => {
  const { at, configure, archived, once, grow, killedAt, putBack, copy } = await anArchiveJourney();
  const config = configure();
  const clock = at('clock.mjs');
  writeFileSync(
    clock,
    `const now = Date.now.bind(Date);
globalThis.Date = class extends Date {
  constructor(...given) { if (given.length === 0) super(Date.now()); else super(...given); }
  static now() { return now() - 26 * 60 * 60 * 1000; }
};`,
  );
  const env = { NODE_OPTIONS: `--import=${clock}` };
  await killedAt(firstEvents, config);
  grow(50);
  const back = await once(config, env);
  copy('older');
  grow(50);
  const right = await once(config);
  putBack('older');
  grow(50);
  const again = await once(config, env);

  expect([back, right, again].map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  expect(again.stderr).toContain('state_older');
  const isClockTold = ({ stderr }: typeof back) =>
    stderr.includes('the clock of this machine is 26h behind upstream');
  expect([back, right, again].map(isClockTold)).toEqual([true, false, true]);
  const verify = ['archive', 'verify', at('archive'), '--key', aSigner().verifier.vkey];
  expect((await runSluice(verify)).stdout).toMatch(/pages were read by a clock .*26h behind it/);
  expect((await archived()).size).toBe(firstEvents + 150);
  expect(readdirSync(at('archive/checkpoints/2026/11')).length).toBeGreaterThan(0);
});

test('an archive that is gone, cut, or another’s is refused unchanged, and resumes once it is back', {
  tags: ['long'],
}, async () => {
  const { at, configure, archived, once, grow, killedAt, refusal, copy } = await anArchiveJourney();
  const config = configure();
  await killedAt(firstEvents, config);
  copy('cut', 'archive');
  grow(50);
  await once(config);
  grow(50);

  renameSync(at('archive'), at('away'));
  mkdirSync(at('archive'));
  await refusal(config, 'it is gone');
  expect(readdirSync(at('archive'))).toEqual([]);
  rmSync(at('archive'), { recursive: true });
  renameSync(at('cut'), at('archive'));
  await refusal(config, 'an older copy was put back');
  rmSync(at('archive'), { recursive: true });
  await once(configure({ state: 'other' }));
  await refusal(config, 'it is another archive than the one that this state has written there');
  await refusal(
    configure({ state: 'third', origin: 'other.test', lake: 'lake: { every: 10ms }' }),
    'it is the archive archive.test, and the signing key is one of other.test',
    'has not opened the archive there',
  );
  expect(readdirSync(at('archive'))).not.toContain('lake');
  const newest = readFileSync(at('archive/checkpoint'));
  rmSync(at('archive/checkpoint'));
  await refusal(configure({ state: 'fourth' }), 'were signed: it is gone');
  writeFileSync(at('archive/checkpoint'), newest);
  rmSync(at('archive'), { recursive: true });
  renameSync(at('away'), at('archive'));
  const moved = await once(configure({ archive: 'second' }));
  const back = await once(config);

  expect([moved.exitCode, back.exitCode]).toEqual([0, 0]);
  const [first, second] = [await archived(), await archived('second')];
  expect([first.size, second.size]).toEqual([firstEvents + 50, 50]);
  expect(new Set([...first, ...second]).size).toBe(firstEvents + 100);
});

test('of two processes that resume from copies of one state, the archive has one, and whole', {
  tags: ['long'],
}, async () => {
  const { configure, archived, grow, copy, start } = await anArchiveJourney();
  const first = start(configure());
  const has = (count: number, what: string) =>
    waitUntil(async () => (await archived().catch(() => new Set())).size >= count, { what });
  await has(firstEvents, 'the first');
  copy('twin');
  const second = start(configure({ state: 'twin' }));
  grow(50);
  await first.waitForLine('another process writes to it');
  grow(50);
  await has(firstEvents + 100, 'the second');
  const reported = (lines: readonly string[]) =>
    lines.filter((line) => line.includes('refuses everything')).length;

  await first.kill('SIGKILL');
  await second.kill('SIGKILL');

  expect([reported(first.stderr) <= 1, reported(second.stderr)]).toEqual([true, 0]);
  expect((await archived()).size).toBe(firstEvents + 100);
});

const canMount = canMountTmpfs('an archive on a full disk');

test.skipIf(!canMount)(
  'a disk that is full, and one that is read-only: it is reported, and nothing is lost',
  { tags: ['long'] },
  async () => {
    const { at, configure, archived, once, grow, env } = await anArchiveJourney();
    const config = configure();
    mkdirSync(at('archive'));
    /** The program with its archive on a disk of its own until it says so; copied away as it is then. */
    const onDisk = async (options: string, until: string) => {
      const script = `mount -t tmpfs -o size=200k tmpfs ${at('archive')}
cp -r ${at('kept')}/. ${at('archive')}/ 2>/dev/null
mount -o remount,${options} ${at('archive')}
"$0" ${mainFile} run -c ${config} --once 2>&1 &
read told
kill -TERM $!
wait $!
"$0" ${mainFile} check -c ${config} --connect 2>&1
cp -r ${at('archive')}/. ${at('kept')}/`;
      mkdirSync(at('kept'), { recursive: true });
      const child = spawnChild('unshare', ['-rm', 'sh', '-c', script, process.execPath], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { PATH: process.env.PATH, ...env },
      });
      afterThisTest(() => endChild(child, 'SIGKILL'));
      let said = '';
      child.stdout?.on('data', (text: Buffer) => {
        said += text.toString();
      });
      const closed = new Promise((done) => child.once('close', done));
      await waitUntil(() => said.includes(until), { what: () => `${until} in ${said}` });
      child.stdin?.end('told\n');
      await closed;
      return said.slice(said.lastIndexOf('sink proof: connection'));
    };
    grow(1_500);
    const full = await onDisk('rw,size=200k', 'Free space on that disk');
    const readOnly = await onDisk('ro,size=32m', 'EROFS');

    rmSync(at('archive'), { recursive: true });
    renameSync(at('kept'), at('archive'));
    const { exitCode } = await once(config);

    expect(full).toMatch(/has 0 MiB free, and one checkpoint may need 16.*Free space/s);
    expect(readOnly).toMatch(/can be written: EROFS.*Let the user/s);
    expect([exitCode, (await archived()).size]).toEqual([0, firstEvents + 1_500]);
  },
);
