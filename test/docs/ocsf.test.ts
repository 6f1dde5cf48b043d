// The tables of docs/ocsf-mapping.md that are written by hand, against the normaliser.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cef } from '../../formats/cef.ts';
import { otel } from '../../formats/otel.ts';
import { syslog } from '../../formats/syslog.ts';
import { severityReader, statusReader } from '../../src/normalise/levels.ts';
import { operationReader } from '../../src/normalise/operations.ts';
import { namedClass } from '../../src/normalise/schema.ts';
import { anEvent } from '../support/an-event.ts';

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'ocsf-mapping.md'), 'utf8');

/** The rows of the first table below a heading, cell by cell. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(`\n${heading}\n`);
  const lines = section.split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  const table = lines.slice(
    first,
    lines.findIndex((line, i) => i > first && !line.startsWith('|')),
  );
  return table.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

test('the words of actions make the activities that the table says', () => {
  const read = operationReader();
  const captions = namedClass('entity_management').activities;
  const rows = rowsUnder('### Actions').filter(([caption]) => caption !== 'Other');

  expect(rows).toHaveLength(13);
  for (const [caption, api, entity, words = ''] of rows) {
    expect(captions[Number(entity)]).toBe(caption);
    for (const word of words.split(' ')) {
      const { api: foundApi, entity: foundEntity } = read(`policy.${word}`);
      expect([word, foundApi, foundEntity]).toEqual([word, Number(api), Number(entity)]);
    }
  }
});

test('the words of severities are read as the table says, and written so by each format', () => {
  const read = severityReader();
  const rows = rowsUnder('## Severity');
  const settings = {
    vendor: 'v',
    product: 'p',
    version: '1',
    replace_pipe: false,
    unmapped: false,
  };

  expect(rows).toHaveLength(7);
  for (const [id = '', syslogLevel, cefLevel, otelLevel, words = ''] of rows) {
    const severityId = Number.parseInt(id, 10);
    for (const word of words.split(' '))
      expect([word, read(word, 'severity')]).toEqual([word, severityId]);

    const event = anEvent({ ocsf: { severity_id: severityId } });
    const line = cef
      .make({ type: 'cef', ...settings })
      .encode(event)
      .toString();
    const frame = syslog
      .make({ ...syslogSettings, message: { type: 'text' } })
      .encode(event)
      .toString();
    const record = JSON.parse(Buffer.from(otel.make(otelSettings).encode(event)).toString());
    const priority = Number(/^<(\d+)>/.exec(frame)?.[1]);

    expect(String(priority % 8)).toBe(syslogLevel);
    expect(line.split('|')[6]).toBe(cefLevel);
    const { severityNumber = 0 } = record.resourceLogs[0].scopeLogs[0].logRecords[0];
    expect(String(severityNumber)).toBe(otelLevel);
  }
});

const syslogSettings = {
  ...{ type: 'syslog', protocol: 'rfc5424', facility: 'local0', app_name: 'sluice' },
  ...{ hostname: 'h', enterprise: 32_473, max_message: 8_000, bom: false },
};
const otelSettings = {
  type: 'otel',
  encoding: 'json',
  body: 'json',
  raw_data: false,
  resource: {},
};

test('the words of outcomes are read as the table says', () => {
  const read = statusReader();

  for (const [id = '', words = ''] of rowsUnder('## Status')) {
    for (const word of words.split(' '))
      expect([word, read(word)]).toEqual([word, Number.parseInt(id, 10)]);
  }
  expect([read(100), read(399), read(400), read(599)]).toEqual([1, 1, 2, 2]);
});
