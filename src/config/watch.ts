// The `watch` of a config: whose changes are checked against which audit trails. Names must exist, and belong to
// sources with changes, or with events.

import type { Flaws } from './flaws.ts';
import { checkNames } from './routes.ts';
import type { Section } from './section.ts';
import type { ConfiguredSource } from './sources.ts';
import type { WrittenValue } from './written.ts';

/** Reports names that do not exist, and sources on the wrong side. */
export function checkWatch(
  written: WrittenValue | undefined,
  sources: Section<ConfiguredSource>,
  flaws: Flaws,
): void {
  const at = written?.children?.get('drift');
  if (at === undefined) return;
  const path = ['watch', 'drift'];
  for (const key of ['changes', 'trail'] as const) {
    checkNames(at, { path, key, what: 'source', names: sources }, flaws);
    for (const [index, { at: where, value }] of at.children?.get(key)?.children ?? []) {
      const source = sources.entries.get(String(value))?.settings ?? null;
      if (source === null) continue;
      const isCollection = source.definition.collection !== undefined;
      if (isCollection === (key === 'changes')) continue;
      const what =
        key === 'changes'
          ? 'this source reports no configuration changes'
          : 'this source is no trail of events';
      flaws.add(where, [...path, key, index], what);
    }
  }
}
