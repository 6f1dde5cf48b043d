// The last lines of a run's log: a pipe or a link with its name, or a torn line, disturbs neither the run nor the reader.

import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lastLines, withTail } from '../../src/run/log-tail.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir } from '../support/temp.ts';

function aTail() {
  const dir = tempDir('log-tail-');
  const log = withTail(silent, dir, 'info');
  const events = () => lastLines(dir, 500).map((line) => JSON.parse(line).event);
  return { dir, file: join(dir, 'log-tail.ndjson'), log, events };
}

test('the file is private, is rotated before it grows, and the last lines are in order', () => {
  const { dir, file, log, events } = aTail();

  for (let n = 0; n < 6_000; n += 1) log.info('running', 'running', { position: n });

  expect(statSync(file).mode & 0o777).toBe(0o600);
  for (const name of ['log-tail.ndjson', 'log-tail.1.ndjson'])
    expect(statSync(join(dir, name)).size).toBeLessThan(300 * 1024);
  expect(events()).toHaveLength(500);
  const positions = lastLines(dir, 3).map((line) => JSON.parse(line).position);
  expect(positions).toEqual([5_997, 5_998, 5_999]);
});

test('a pipe with its name blocks neither the run nor the reader', () => {
  const { file, log, events } = aTail();
  expect(spawnSync('mkfifo', [file]).status).toBe(0);

  log.info('running', 'running', {});

  expect(events()).toEqual([]);
});

test('a link with its name is not followed', () => {
  const { dir, file, log } = aTail();
  symlinkSync(join(dir, 'other'), file);

  log.info('running', 'running', {});

  expect(existsSync(join(dir, 'other'))).toBe(false);
});

test('a line that a kill cut is left out, and so is the line after it', () => {
  const { file, log, events } = aTail();
  log.info('running', 'running', {});
  appendFileSync(file, '{"time":"2026-11');

  log.info('stopped', 'stopped', {});
  log.info('running', 'running', {});

  expect(readFileSync(file, 'utf8')).toContain('{"time":"2026-11{');
  expect(events()).toEqual(['running', 'running']);
});

test('a file that sluice did not write is not read whole', () => {
  const { file, log, events } = aTail();
  log.info('running', 'running', {});
  truncateSync(file, 1024 ** 3);

  expect(events()).toEqual([]);
});
