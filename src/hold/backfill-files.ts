// Version 0.1.0 stored requested backfills as files in the state directory. They are imported once,
// as rows of the database; their checkpoints and identities are already there.

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { JsonObject } from '../contracts/index.ts';
import { backfillsAmong, readProgress } from './backfills.ts';
import { parsedObject } from './requests.ts';
import { changeState, type StoreSettings } from './store.ts';

const file = z.object({
  id: z.string().regex(/^[0-9a-f-]+$/),
  source: z.string(),
  from: z.number(),
  to: z.number(),
  isBounded: z.boolean(),
  askedAt: z.number(),
  wanted: z.boolean(),
});

/** Imports the files. No other process may run in the directory. */
export function importBackfillFiles(settings: StoreSettings): void {
  const folder = join(settings.dir, 'backfills');
  if (!existsSync(folder)) return;
  const names = readdirSync(folder).filter((name) => /^[0-9a-f-]+(\.done)?\.json$/.test(name));
  changeState(settings, (store) =>
    store.transaction(() => {
      // An earlier start may have stopped before it removed the folder.
      const known = new Set(backfillsAmong(store.requests.all()).map(({ id }) => id));
      for (const name of names) {
        const asked = file.safeParse(parsed(join(folder, name))).data;
        if (asked === undefined || known.has(asked.id)) continue;
        const { id, source, from, to, isBounded, askedAt, wanted: requested } = asked;
        const row = store.requests.ask(
          source,
          { what: 'backfill', key: id, from, to, isBounded },
          askedAt,
        );
        const progress = readProgress(parsed(join(folder, `${id}.progress.json`)));
        if (progress === null) continue;
        store.requests.note(row, { ...progress });
        const hasFailed = progress.state === 'failed' && progress.at >= askedAt;
        const state = name.endsWith('.done.json') ? 'done' : hasFailed ? 'failed' : 'stopped';
        if (state !== 'stopped' || !requested) store.requests.answer(row, { ...progress, state });
      }
    }),
  );
  rmSync(folder, { recursive: true, force: true });
}

function parsed(path: string): JsonObject | null {
  try {
    return parsedObject(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}
