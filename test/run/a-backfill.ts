// Shared by the tests of `sluice backfill`: a span of the sandbox's audit events, the command line that requests it,
// and the resulting events.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { auditPath, type Setup } from '../commands/a-setup.ts';
import { tempDir } from '../support/temp.ts';

/** A span of time and the ids of the records that stand within it, in order. */
export interface PastSpan {
  readonly args: readonly string[];
  readonly ids: readonly string[];
}

/** From the record at one index of the sandbox's list up to the one at another. */
export function pastSpan({ sandbox, config }: Setup, first: number, last: number): PastSpan {
  const records = [...sandbox.ledger().list(auditPath).records()].map(({ id, text }) => ({
    id: id ?? '',
    time: JSON.parse(text).timestamp as string,
  }));
  const [from, to] = [first, last].map((at) => records[at]?.time ?? '') as [string, string];
  const isWithin = (time: string) =>
    Date.parse(time) >= Date.parse(from) && Date.parse(time) < Date.parse(to);
  return {
    args: ['backfill', '-c', config, '--source', 'audit', '--from', from, '--to', to],
    ids: records.filter(({ time }) => isWithin(time)).map(({ id }) => id),
  };
}

/** An event in the file sink. */
export interface Delivered {
  readonly uid: string;
  readonly id: string;
}

/** The events in the file sink, in order. */
export function deliveredIn({ dir }: Setup): readonly Delivered[] {
  const file = join(dir, 'events.ndjson');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const { metadata } = JSON.parse(line);
    return { uid: metadata.uid, id: metadata.original_event_uid };
  });
}

/** A config that is never polled or opened. */
export function aConfigFile(): string {
  const dir = tempDir('backfill-');
  const at = 'base_url: "https://upstream.invalid/v1", auth: { api_key: none }';
  const lines = [
    `state: { dir: ${join(dir, 'state')} }`,
    'upstreams:',
    `  edge: { api: unified, ends: never, ${at}, throttle: [{ path: /audit/events, requests: 10, per: 1m }] }`,
    `  ops: { api: services, companies: [c-1], ${at} }`,
    'sources:',
    '  audit: { type: audit_events, upstream: edge, every: 1h }',
    '  firewall: { type: firewall, upstream: ops, every: 1h }',
    'sinks:',
    '  screen: { type: stdout, format: json }',
  ];
  const file = join(dir, 'sluice.yaml');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
