// The marker of an event whose record is not valid UTF-8. Its texts have U+FFFD for undecodable
// bytes; if a format writes `raw_data`, that is the record's bytes as base64.

import type { Json, OcsfEvent } from '../contracts/index.ts';

const marker: Json = { name: 'invalid_utf8', value: 'raw_data is base64' };

/** The event with the marker among its tags. */
export function withInvalidUtf8(event: OcsfEvent): OcsfEvent {
  const { tags } = event.metadata;
  const others = Array.isArray(tags) ? tags : [];
  return { ...event, metadata: { ...event.metadata, tags: [...others, marker] } };
}
