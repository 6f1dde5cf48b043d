// `sluice archive export`: a span of an archive, with its proofs, as a directory for an auditor; or the records that
// match a filter, each with its own proof and nothing of other records, such as all records of one person.

import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeProof, exportRange, type ProvenRecord, proveRecord } from '../../archive/audit.ts';
import { type ArchiveReader, openDirectory } from '../../archive/index.ts';
import { ExportError, errorText, UsageError } from '../../contracts/index.ts';
import { counted, shellWord, sizeText } from '../../terminal/index.ts';
import { type CommandDeps, defineCommand, type ExitCode } from '../shared/command.ts';
import { timeTyped } from '../shared/typed.ts';
import { locationArgument } from './given.ts';
import {
  listMatches,
  type Matches,
  type MatchWishes,
  matchesIn,
  type RecordMatch,
  whereOptions,
} from './matches.ts';
import { keysFor, trustedArchive, trustedKeyOption } from './trusted.ts';

/** Copies a span of an archive. */
export const archiveExport = defineCommand({
  name: 'export',
  about: 'copy the records of a span of time, or those that match, with their proofs',
  arguments: { location: locationArgument },
  options: {
    from: { value: 'time', about: 'pages read from this time on (RFC 3339)' },
    to: { value: 'time', about: 'pages read before this time' },
    ...whereOptions,
    out: { value: 'directory', about: 'target directory; must not exist yet', needed: true },
    key: trustedKeyOption,
  },
  more: `Give --from and --to, or --where. With --where the matching records are listed first, and the export has these records
only: DIR/matches.ndjson, and for each one DIR/UID.record and DIR/UID.proof, for archive check-proof.
Without --where the export has the tree and all entries, so that the proofs are the same. An entry names the request of a page, its
size and its time, and nothing of its content. Bodies are copied in whole segments, events of a lake in whole cuts.`,
  async run({ location, from, to, where, config, out: directory, key }, deps) {
    const { out, env } = deps;
    if (where !== undefined) {
      return await exportMatches(location, { where, config, from, to, directory, key }, deps);
    }
    if (from === undefined || to === undefined) {
      throw new UsageError('give --from and --to, or --where');
    }
    const span = { from: timeTyped('from', from), to: timeTyped('to', to) };
    if (span.to <= span.from) throw new UsageError('--to: expected a time after --from');
    try {
      const reader = await trustedArchive(location, keysFor(location, key, null), env);
      const target = begun(directory);
      const into = openDirectory(directory);
      const { pages, segments, bytes } = await exportRange(reader, { ...span, into });
      target.complete();
      out(`${counted(pages, 'page')} in ${counted(segments, 'segment')}, ${sizeText(bytes)}`);
      const words = ['--from', from, '--to', to].map(shellWord).join(' ');
      out(`npx sluice archive verify ${shellWord(directory)} --key VKEY ${words}`);
      return 0;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `exporting from ${location}: ${error.message}`, {
        next: 'Name a directory that does not exist yet. `npx sluice archive verify` reports whether the archive is damaged.',
        cause: error,
      });
    }
  },
});

/** Writes each matching record with its proof. */
async function exportMatches(
  location: string,
  given: MatchWishes & { readonly directory: string },
  deps: CommandDeps,
): Promise<ExitCode> {
  const { out, err } = deps;
  const matches = await matchesIn(location, given, deps);
  listMatches(matches, deps);
  if (matches.found.length === 0) return 1;
  const { directory } = given;
  const target = begun(directory);
  const unique = new Map(matches.found.map((match) => [match.uid, match]));
  const erased: string[] = [];
  let bytes = 0;
  for await (const [{ uid }, proven] of provenRecords([...unique.values()], matches, deps)) {
    if (proven === null) {
      erased.push(uid);
      continue;
    }
    bytes += proven.record.length;
    const name = join(directory, uid);
    writing(() => writeFileSync(`${name}.record`, proven.record, { mode: 0o640 }));
    writing(() => writeFileSync(`${name}.proof`, encodeProof(proven.proof), { mode: 0o640 }));
  }
  const lines = [...unique.values()].map(({ location: _, entry: __, ...match }) =>
    JSON.stringify(match),
  );
  writing(() =>
    writeFileSync(join(directory, 'matches.ndjson'), `${lines.join('\n')}\n`, { mode: 0o640 }),
  );
  target.complete();
  for (const uid of erased) err(`${uid}: the record is erased, and is not in the export`);
  out(`${counted(unique.size - erased.length, 'record')}, ${sizeText(bytes)}`);
  const [first = ''] = unique.keys();
  const name = shellWord(join(directory, first));
  out(`npx sluice archive check-proof ${name}.proof --record ${name}.record --key VKEY`);
  return 0;
}

/** Each record with its proof; null: it was erased. An archive is opened once for all of its records. */
async function* provenRecords(
  found: readonly RecordMatch[],
  { trusted }: Pick<Matches, 'trusted'>,
  { env }: CommandDeps,
): AsyncGenerator<readonly [RecordMatch, ProvenRecord | null]> {
  for (const [location, matches] of Map.groupBy(found, (match) => match.location)) {
    const reader = await trustedArchive(location, trusted, env);
    try {
      for (const match of matches) yield [match, await provenRecord(reader, match)];
    } finally {
      reader.store.close();
    }
  }
}

async function provenRecord(reader: ArchiveReader, { location, uid, entry }: RecordMatch) {
  try {
    return await proveRecord(reader, uid, entry);
  } catch (error) {
    if (error instanceof ExportError && error.code === 'sink_refused') return null;
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `exporting from ${location}: ${error.message}`, {
      next: 'The archive is damaged: `npx sluice archive verify` lists every break.',
      cause: error,
    });
  }
}

/** In the target until the export is complete. */
const unfinishedName = 'unfinished-export';

/** Creates the target. All that is in one with the mark is of an export that was killed, and is deleted. */
function begun(directory: string): { complete(): void } {
  const mark = join(directory, unfinishedName);
  writing(() => {
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    const names = readdirSync(directory);
    // A link would name a file elsewhere, and no export creates one.
    const isMarked = names.includes(unfinishedName) && lstatSync(mark).isFile();
    if (names.length > 0 && !isMarked) throw new Error(`${directory} is not empty`);
    for (const name of names) {
      if (name !== unfinishedName) rmSync(join(directory, name), { recursive: true });
    }
    if (!isMarked)
      writeFileSync(mark, 'This export is not complete.\n', { mode: 0o640, flag: 'wx' });
  });
  return { complete: () => writing(() => rmSync(mark)) };
}

function writing(write: () => void): void {
  try {
    write();
  } catch (error) {
    throw new UsageError(`--out: ${errorText(error)}; name a directory that does not exist yet`);
  }
}
