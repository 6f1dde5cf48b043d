// The `leef` format: IBM QRadar's Log Event Extended Format 2.0,
// `LEEF:2.0|vendor|product|version|event id|^|key=value^key=value…`. It has CEF's values, under
// LEEF's own names if LEEF has one (dialect.ts). The standard has no escapes: `|`, `^` and control
// characters are replaced, so that no content can end the header or a pair.

import type { z } from 'zod';
import { defineFormat } from '../src/contracts/config.ts';
import { cefFields, encodingOf, pairWriter } from './cef.ts';
import { leefDialect } from './dialect.ts';

const { vendor, product, version, unmapped } = cefFields;

/** The settings of `leef`, also as the message of a syslog line. */
export const leefFields = { vendor, product, version, unmapped };

/** The `leef` format. */
export const leef = defineFormat({
  type: 'leef',
  shape: 'lines',
  summary: 'Log Event Extended Format 2.0, for IBM QRadar.',
  fields: leefFields,
  make(settings) {
    return {
      name: 'leef',
      contentType: 'text/plain; charset=utf-8',
      ...encodingOf(leefWriter(settings)),
    };
  },
});

/** Creates a writer of LEEF events. */
export function leefWriter(settings: z.output<z.ZodObject<typeof leefFields>>) {
  return pairWriter('LEEF:2.0', leefDialect, { ...settings, replace_pipe: false });
}
