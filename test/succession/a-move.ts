// A config that moves an audit list from one of the two scripted upstreams to the other, for the tests of this directory.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Delivered,
  type Entry,
  type MovingOptions,
  type MovingUpstreams,
  startMovingUpstreams,
} from '../support/moving/upstreams.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

/** How the move is configured; YAML in JSON's form. */
export interface MoveOptions extends MovingOptions {
  readonly succeeds?: object | null;
  readonly old?: object;
  readonly new?: object;
  /** More sources. */
  readonly more?: object;
  readonly top?: object;
}

/** The move. */
export interface Move {
  readonly dir: string;
  readonly config: string;
  readonly pair: MovingUpstreams;
  /** Writes the config again. */
  write(options?: MoveOptions): void;
  /** The delivered events. */
  lines(): readonly string[];
  delivered(expected?: readonly Entry[]): Delivered;
  /** Resolves when nothing that was shown is missing any more. */
  complete(expected?: readonly Entry[]): Promise<void>;
}

/** Starts both upstreams and writes a config. */
export async function aMove(options: MoveOptions = {}): Promise<Move> {
  const dir = tempDir();
  const pair = await startMovingUpstreams({ pageMax: 20, ...options });
  const config = join(dir, 'sluice.yaml');
  const out = join(dir, 'events.ndjson');
  const write = ({ succeeds = {}, top = {}, ...of }: MoveOptions = options) => {
    const usual = { every: '100ms', rewind_every: '1s', reconcile_every: '1s' };
    const old = {
      ...{ type: 'logs', upstream: 'old', path: '/audit', time: ['eventTime'], ...usual },
      pagination: { style: 'page', page_param: 'page', size_param: 'page_size' },
      ...of.old,
    };
    const late = {
      ...{ type: 'logs', upstream: 'new', path: '/api/logs/v1/audit', time: ['event_time'] },
      ...{ ...usual, pagination: { style: 'cursor' } },
      succeeds: { source: 'old_audit', patience: '2s', overlap: '2h', ...succeeds },
      ...of.new,
    };
    const sources = {
      old_audit: old,
      ...(succeeds === null ? {} : { new_audit: late }),
      ...of.more,
    };
    const text = {
      state: { dir: join(dir, 'state') },
      ...{ upstreams: pair.upstreams, sources },
      sinks: { disk: { type: 'file', path: out } },
      ...top,
    };
    writeFileSync(config, JSON.stringify(text));
  };
  write();
  const lines = () =>
    existsSync(out)
      ? readFileSync(out, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
      : [];
  const delivered = (expected?: readonly Entry[]) => pair.count(lines().join('\n'), expected);
  return {
    ...{ dir, config, pair, write, lines, delivered },
    async complete(expected) {
      const what = () => {
        const { lost, repeated } = delivered(expected);
        return `nothing to be lost; ${lost.length} are, such as ${lost[0]}, ${repeated.length} repeated`;
      };
      await waitUntil(() => delivered(expected).lost.length === 0, { what });
    },
  };
}
