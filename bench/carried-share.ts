// `npx node bench/carried-share.ts`: the share of real records that each format carries to the receiver
// (test/formats/carried-share.ts describes the count). The records are other people's and are beside this checkout, in
// `../shared/data/samples`; without them there is nothing to measure, and the program reports that.

import {
  addFound,
  type Found,
  foundOf,
  foundShare,
  type Way,
} from '../test/formats/carried-share.ts';
import { hasShared, loadSamples, sampleNames } from '../test/normalise/ocsf.ts';
import { sampleMappings } from '../test/support/sample-mappings.ts';

const shapes: readonly Pick<Way, 'format' | 'settings'>[] = [
  { format: 'cef' },
  { format: 'syslog', settings: { message: 'cef' } },
  { format: 'syslog', settings: { message: 'json' } },
  { format: 'json' },
  { format: 'ecs' },
  { format: 'leef' },
  { format: 'gelf' },
  { format: 'otel' },
];
const nothing = (): Found => ({ values: 0, standard: 0, own: 0, rest: 0, lost: 0 });

function row(found: Found): Record<string, number> {
  const share = (part: number) => Number(((part * 100) / found.values).toFixed(2));
  return {
    values: found.values,
    'found %': Number(foundShare(found).toFixed(2)),
    'standard keys %': share(found.standard),
    'own keys %': share(found.own),
    'rest %': share(found.rest),
    'lost %': share(found.lost),
  };
}

if (hasShared) {
  for (const shape of shapes) {
    const title = `${shape.format} ${JSON.stringify(shape.settings ?? {})}`;
    const rows: Record<string, Record<string, number>> = {};
    const ways = {
      audit_events: () => ({ kind: 'audit', ...shape }),
      logs: () => ({ kind: 'log', ...shape }),
      'logs, mapped': (name: keyof typeof sampleMappings) => ({
        kind: 'log',
        mapping: sampleMappings[name],
        ...shape,
      }),
    } as const satisfies Record<string, (name: keyof typeof sampleMappings) => Way>;
    for (const [way, of] of Object.entries(ways)) {
      const total = nothing();
      for (const name of sampleNames) {
        const found = foundOf(loadSamples(name), of(name));
        addFound(total, found);
        rows[`${way}: ${name}`] = row(found);
      }
      rows[`${way}: all`] = row(total);
    }
    console.log(title);
    console.table(rows);
  }
} else {
  console.log('nothing to measure: ../shared/data/samples is not beside this checkout');
}
