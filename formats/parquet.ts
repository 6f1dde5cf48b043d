// The `parquet` format: events as rows of Apache Parquet, for sinks that write whole objects. Rows
// come about by the object (src/parquet/); what is encoded singly is how a row is shown where events
// are looked at one by one.

import { defineFormat } from '../src/contracts/definition.ts';
import { jsonText } from './json-text.ts';

/** The `parquet` format. */
export const parquet = defineFormat({
  type: 'parquet',
  shape: 'rows',
  summary: 'Objects of Apache Parquet, each with the events of one OCSF class.',
  fields: {},
  make: () => ({
    name: 'parquet',
    contentType: 'application/vnd.apache.parquet',
    encode: ({ ocsf }) => jsonText(ocsf),
    // The event itself would be made twice over: here, and where it is taken apart into columns.
    batched: ({ raw }) => raw,
  }),
});
