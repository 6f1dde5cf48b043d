// The list of formats. To add one: its file, its line here, its test; the engine, the command line,
// the reference and the contract suite use this list.

import type { FormatDefinition, SinkDefinition } from '../src/contracts/config.ts';
import { cef } from './cef.ts';
import { ecs } from './ecs.ts';
import { gelf } from './gelf.ts';
import { json } from './json.ts';
import { leef } from './leef.ts';
import { otel } from './otel.ts';
import { parquet } from './parquet.ts';
import { syslog } from './syslog.ts';

/** Every format, in the order of the reference. */
export const formats: readonly FormatDefinition[] = [
  json,
  syslog,
  cef,
  leef,
  ecs,
  gelf,
  otel,
  parquet,
];

/** Types of the formats that a sink can carry: its default, then the others by name. */
export function formatsOf({
  carries,
  usualFormat,
}: Pick<SinkDefinition, 'carries' | 'usualFormat'>): readonly string[] {
  const carried = carries.flatMap((requested) =>
    formats.flatMap(({ type, shape }) => (shape === requested ? type : [])).toSorted(),
  );
  return [usualFormat, ...carried.filter((type) => type !== usualFormat)];
}
