// `sluice archive export`: a span of an archive, with its proofs, as a directory for an auditor.

import { exportRange } from '../../archive/export.ts';
import { ExportError, UsageError } from '../../contracts/errors.ts';
import { openDirectory } from '../../objects/directory.ts';
import { shellWord } from '../../terminal/command-text.ts';
import { counted, sizeText } from '../../terminal/table.ts';
import { defineCommand } from '../shared/command.ts';
import { timeTyped } from '../shared/typed.ts';
import { locationArgument, openArchive } from './given.ts';

/** Copies a span of an archive. */
export const exportCommand = defineCommand({
  name: 'export',
  about: 'copy what was read in a span of time with its proofs, complete in itself',
  arguments: { location: locationArgument },
  options: {
    from: { value: 'time', about: 'pages read from this time on (RFC 3339)', needed: true },
    to: { value: 'time', about: 'pages read before this time', needed: true },
    out: { value: 'directory', about: 'where to; a directory that is not there yet', needed: true },
  },
  more: `The tree and all entries come along, so that everything is proven there as here; an entry tells of a page
what was asked, how much came and when, and nothing of what stood in it. Bodies come in whole segments, a lake's events in whole cuts.`,
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
        next: 'Name a directory that is not there yet; `npx sluice archive verify` tells whether the archive is damaged.',
        cause: error,
      });
    }
  },
});
