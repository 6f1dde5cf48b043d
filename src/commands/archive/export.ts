// `sluice archive export`: a span of an archive, with its proofs, as a directory for an auditor.

import { exportRange } from '../../archive/audit.ts';
import { ExportError, UsageError } from '../../contracts/index.ts';
import { openDirectory } from '../../objects/index.ts';
import { counted, shellWord, sizeText } from '../../terminal/index.ts';
import { defineCommand } from '../shared/command.ts';
import { timeTyped } from '../shared/typed.ts';
import { locationArgument, openArchive } from './given.ts';

/** Copies a span of an archive. */
export const archiveExport = defineCommand({
  name: 'export',
  about: 'copy the records of a span of time with their proofs, complete in itself',
  arguments: { location: locationArgument },
  options: {
    from: { value: 'time', about: 'pages read from this time on (RFC 3339)', needed: true },
    to: { value: 'time', about: 'pages read before this time', needed: true },
    out: { value: 'directory', about: 'target directory; must not exist yet', needed: true },
  },
  more: `The export has the tree and all entries, so that the proofs are the same. An entry names the request of a page, its
size and its time, and nothing of its content. Bodies are copied in whole segments, events of a lake in whole cuts.`,
  async run({ location, from, to, out: directory }, { out, env }) {
    const span = { from: timeTyped('from', from), to: timeTyped('to', to) };
    if (span.to <= span.from) throw new UsageError('--to: expected a time after --from');
    try {
      const into = openDirectory(directory);
      const { pages, segments, bytes } = await exportRange(await openArchive(location, env), {
        ...{ ...span, into },
      });
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
