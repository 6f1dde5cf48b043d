// `sluice archive stats`: counts and sizes of an archive's objects. It does not check the objects; `verify` does.

import { counted, factLines, sizeText } from '../../terminal/index.ts';
import { defineCommand } from '../shared/command.ts';
import { holdsAt, locationArgument, openArchive, signedHead } from './given.ts';

const kinds = ['segments', 'lake', 'tile', 'checkpoints'] as const;

/** Sizes of an archive. */
export const stats = defineCommand({
  name: 'stats',
  about: 'show the number of entries of an archive, and the size of each part',
  arguments: { location: locationArgument },
  options: { json: { about: 'as JSON' } },
  async run({ location, json }, { out, env }) {
    const { store } = await openArchive(location, env);
    const { origin, size } = await signedHead(store);
    const parts = Object.fromEntries(kinds.map((kind) => [kind, { objects: 0, bytes: 0 }]));
    let days: readonly [string, string] | null = null;
    for (const kind of kinds) {
      for await (const { name, bytes } of store.list(`${kind}/`)) {
        const part = parts[kind];
        if (part === undefined) continue;
        part.objects += 1;
        part.bytes += bytes;
        const day = /^segments\/(\d{4})\/(\d\d)\/(\d\d)/.exec(name)?.slice(1).join('-');
        if (day !== undefined) days = [days?.[0] ?? day, day];
      }
    }
    const holds = (await holdsAt(store)).filter(({ released_at }) => released_at === null).length;
    if (json) {
      const [first, last] = days ?? [null, null];
      out(
        JSON.stringify(
          { place: store.location, origin, entries: size, ...parts, holds, first, last },
          null,
          2,
        ),
      );
      return 0;
    }
    const partLine = (kind: (typeof kinds)[number]) => {
      const { objects = 0, bytes = 0 } = parts[kind] ?? {};
      return [
        kind === 'tile' ? 'tree' : kind,
        `${counted(objects, 'object')}, ${sizeText(bytes)}`,
      ] as const;
    };
    for (const line of factLines([
      ['archive', `${origin} at ${store.location}`],
      ['entries', String(size)],
      ...kinds.map(partLine),
      ['bodies', days === null ? 'none' : `of ${days[0]} to ${days[1]}`],
      ['holds', String(holds)],
    ])) {
      out(line);
    }
    return 0;
  },
});
