// The `parquet` format: events as rows of Apache Parquet, for sinks that write whole objects.
// src/parquet/ builds the rows of an object; the single encoding only displays a row when events
// are inspected one by one.

import { defineFormat } from '../src/contracts/config.ts';
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
    // Encoding the event would duplicate the work: here, and when it is split into columns.
    isBuilt: true,
  }),
});
