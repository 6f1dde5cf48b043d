// Some of the torture records that `npx node test/security/fuzz-main.ts` runs a million of, and a sample of them through a real rsyslogd
// with liblognorm's CEF decoder, which other people wrote.

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { decodeCef } from '../formats/decoders.ts';
import { makeFormat } from '../formats/make-format.ts';
import { startRsyslog } from '../support/rsyslog.ts';
import { fuzz } from './fuzz.ts';
import { readers } from './readers.ts';
import { pageRecords, torturePage } from './torture-page.ts';

const seed = 20_261_121;

test('every torture record comes back from every format as it went in, and forges nothing', () => {
  const pages = 20;

  const { decoded, findings } = fuzz(seed, 0, pages);

  expect(findings).toEqual([]);
  expect(decoded).toBe(pages * pageRecords * readers.length);
});

test('rsyslog and liblognorm read CEF of torture records as the project’s own decoder does', async () => {
  const rsyslog = await startRsyslog();
  const format = makeFormat('syslog', { hostname: 'gw-1', app_name: 'sluice', message: 'cef' });
  const events = [0, 1, 2].flatMap((page) => torturePage(seed, page).events);
  const lines = events.map((event) => Buffer.from(format.encode(event)));

  const socket = connect(rsyslog.tcpPort, '127.0.0.1');
  for (const line of lines) socket.write(Buffer.concat([Buffer.from(`${line.length} `), line]));
  socket.end();
  const records = await rsyslog.waitFor(lines.length);

  expect(records.length).toBe(lines.length);
  records.forEach(({ msg, cef, structuredData }, i) => {
    const own = decodeCef(msg);
    expect(structuredData['sluice@32473']?.uid).toBe(events[i]?.uid);
    if (cef?.decoded !== true) throw new Error(`liblognorm stops at ${cef?.unparsed}`);
    expect(cef.name).toBe(own.name);
    expect(cef.signatureId).toBe(own.deviceEventClassId);
    // liblognorm leaves blanks at the end of the last value out, as the standard lets it.
    const values = (pairs: Iterable<readonly [string, string]>) =>
      [...pairs].map(([key, value]) => [key, value.trimEnd()]).sort();
    expect(values(Object.entries(cef.extensions))).toEqual(values(own.extension));
  });
});
