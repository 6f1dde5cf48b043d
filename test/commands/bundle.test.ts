// What `npm ci` makes of the sources, in a copy of the project: it is started as long as it was made of the sources as they
// are, in a few modules where they are hundreds, and with the spool's thread from the bundle, too. The rest of the tests
// start it as well (test/support/global-setup.ts), so that they show what users run.

import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../support/children.ts';
import { tempDir } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

const project = join(import.meta.dirname, '..', '..');

/** The sources, with a directory of packages of their own. */
function aCopy(): string {
  const dir = tempDir('project-');
  for (const name of ['src', 'connectors', 'formats', 'package.json']) {
    cpSync(join(project, name), join(dir, name), { recursive: true, preserveTimestamps: true });
  }
  mkdirSync(join(dir, 'node_modules'));
  for (const name of readdirSync(join(project, 'node_modules'))) {
    if (name.startsWith('.')) continue;
    symlinkSync(join(project, 'node_modules', name), join(dir, 'node_modules', name));
  }
  return dir;
}

/** Runs it, and returns the addresses of the modules that each of its threads has loaded, without Node's own. */
async function loadedBy(copy: string, ...args: readonly string[]) {
  const file = join(tempDir(), 'loaded.ndjson');
  const witness = `
    import { appendFileSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    import { isMainThread } from 'node:worker_threads';
    registerHooks({ load(url, context, next) {
      if (!url.startsWith('node:') && !url.startsWith('data:')) {
        appendFileSync(${JSON.stringify(file)}, JSON.stringify({ url, isMainThread }) + '\\n');
      }
      return next(url, context);
    } });`;
  const hook = `--import=data:text/javascript,${encodeURIComponent(witness)}`;
  const sluice = join(copy, 'src/boot/sluice.js');
  const { errors, exitCode } = await runProgram(process.execPath, [hook, sluice, ...args]);
  if (exitCode !== 0) throw new Error(errors);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const reported = lines.map((line): { url: string; isMainThread: boolean } => JSON.parse(line));
  const urls = (ofMain: boolean) =>
    reported.flatMap(({ url, isMainThread }) => (isMainThread === ofMain ? [url] : []));
  return { main: urls(true), thread: urls(false) };
}

test('a bundle is run while it is of the sources as they are, then the sources', {
  tags: ['long'],
}, async () => {
  const { config, delivered } = await aSetup();
  const copy = aCopy();
  const sources = await loadedBy(copy, 'check', '-c', config);
  const made = await runProgram(process.execPath, [join(copy, 'src/boot/bundle.js')]);
  expect(made).toEqual({ output: '', errors: '', exitCode: 0 });

  const bundled = await loadedBy(copy, 'check', '-c', config);
  const run = await loadedBy(copy, 'run', '--once', '-c', config);
  const own = (urls: readonly string[]) =>
    urls.filter((url) => /\/(src|connectors|formats)\//.test(url) && !/\.json$/.test(url));
  const boot = ['sluice.js', 'bundled.js', 'signals.js'].map((name) =>
    expect.stringContaining(name),
  );

  expect(delivered()).toHaveLength(250);
  expect(own(sources.main).length).toBeGreaterThan(200);
  expect(own(bundled.main)).toEqual(boot);
  expect(bundled.main.length).toBeLessThan(110);
  expect(own(run.main)).toEqual(boot);
  expect(run.thread[0]).toContain('sluice-bundle/spool-worker.mjs');
  expect(own(run.thread)).toEqual([]);

  appendFileSync(join(copy, 'formats/cef.ts'), '\n');
  expect((await loadedBy(copy, 'check', '-c', config)).main).toEqual(sources.main);
});
