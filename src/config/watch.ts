// The `watch` of a config: whose changes are checked against which audit trails. Names must exist, and belong to
// sources with changes, or with events.

import type { DriftSettings } from '../contracts/index.ts';
import { type BlockReading, parseBlock } from './block.ts';
import { checkNames } from './routes.ts';
import type { Section } from './section.ts';
import { watchBlock } from './shape.ts';
import type { ConfiguredSource } from './sources.ts';
import type { WrittenValue } from './written.ts';

/** Reads it; null: nothing is watched. */
export function readWatch(
  written: WrittenValue | undefined,
  sources: Section<ConfiguredSource>,
  reading: BlockReading,
): DriftSettings | null {
  const settings = parseBlock(watchBlock, { written, path: ['watch'] }, reading);
  const drift = settings?.drift;
  const at = written?.children?.get('drift');
  if (drift === undefined || at === undefined) return null;
  const path = ['watch', 'drift'];
  for (const key of ['changes', 'trail'] as const) {
    checkNames(at, { path, key, what: 'source', names: sources }, reading);
    for (const [index, { at: where, value }] of at.children?.get(key)?.children ?? []) {
      const source = sources.entries.get(String(value))?.settings ?? null;
      if (source === null) continue;
      const isCollection = source.definition.collection !== undefined;
      if (isCollection === (key === 'changes')) continue;
      const what =
        key === 'changes'
          ? 'this source reports no configuration changes'
          : 'this source is no trail of events';
      reading.flaws.add(where, [...path, key, index], what);
    }
  }
  const { changes, trail, within, match } = drift;
  return { changes, trail, withinMs: within, match };
}
