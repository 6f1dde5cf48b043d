// The status over HTTP, requested as probes, scrapers and browsers do.

import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { buildText } from '../../src/tools/index.ts';
import { manualClock } from '../support/manual-clock.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';
import { aFailure, aMoment, aServer, aSink, aStream, ask, aTap, listenTo } from './a-moment.ts';

const evil = '"</script><script>alert(1)</script>\n\nevent: state\ndata: {}\n\n';
const refusing = aMoment({ sinks: [aSink({ state: 'refused', error: aFailure('401') })] });

describe('the paths', () => {
  test('/healthz says that the process lives, whatever else is wrong', async () => {
    const { url } = await aServer(() => refusing);

    expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200, body: 'ok\n' });
  });

  test('/readyz is 200, and 503 with the reason as soon as the journey stalls', async () => {
    let watched = aMoment();
    const { url } = await aServer(() => watched);

    const before = await ask(`${url}/readyz`);
    watched = refusing;
    const during = await ask(`${url}/readyz`);
    watched = aMoment();
    const after = await ask(`${url}/readyz`);

    expect([before.status, during.status, after.status]).toEqual([200, 503, 200]);
    expect(JSON.parse(before.body)).toEqual({ ready: true, reasons: [] });
    expect(JSON.parse(during.body)).toMatchObject({
      ready: false,
      reasons: [{ part: 'sink', name: 'siem', reason: 'refused' }],
    });
  });

  test('/metrics is Prometheus text, and follows /readyz', async () => {
    const { url } = await aServer(() => refusing);

    const { headers, body } = await ask(`${url}/metrics`);

    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body).toContain('\nsluice_ready 0\n');
    expect(body).toContain('\nsluice_sink_refused{sink="siem"} 1\n');
  });

  test('/status.json has everything, also of more streams than a page can show', async () => {
    const streams = Array.from({ length: 600 }, (_, index) => aStream({ name: `s${index}` }));
    const { url } = await aServer(() => ({ ...refusing, streams }));

    const report = JSON.parse((await ask(`${url}/status.json`)).body);

    expect(report).toMatchObject({
      version: buildText(),
      ready: false,
      streams_total: 600,
      spool: { bytes: 1_000, max_bytes: 1_000_000, events: 10 },
      sinks: [{ name: 'siem', well: false, error: { message: '401', next: 'Look.' } }],
    });
    expect(report.streams).toHaveLength(600);
  });

  test('/status.json has only matching streams, by name, state or error', async () => {
    const streams = [
      aStream({ name: 'web_logs/c-1' }),
      aStream({ name: 'web_logs/c-2', state: 'halted', error: aFailure('the Cursor is gone') }),
      aStream({ name: 'audit' }),
    ];
    const { url } = await aServer(() => aMoment({ streams }));
    const found = async (find: string) => {
      const { body } = await ask(`${url}/status.json?${new URLSearchParams({ find })}`);
      const report = JSON.parse(body);
      expect(report.streams_total).toBe(3);
      expect(report.streams_found).toBe(report.streams.length);
      return report.streams.map(({ name }: { name: string }) => name);
    };

    expect(await found('WEB_LOGS')).toEqual(['web_logs/c-1', 'web_logs/c-2']);
    expect(await found('halted')).toEqual(['web_logs/c-2']);
    expect(await found(' cursor is ')).toEqual(['web_logs/c-2']);
    expect(await found('%')).toEqual([]);
  });

  test('/events starts with the past and the present, and continues each second', async () => {
    const clock = manualClock();
    const { url } = await aServer(() => aMoment(), { clock });

    const received = await listenTo(`${url}/events`);
    await waitUntil(() => received.names().length >= 2, { what: 'the beginning' });
    await clock.advance(10_000);
    await waitUntil(() => received.names().length >= 13, { what: 'ten seconds' });

    const names = received.names();
    expect(names.slice(0, 2)).toEqual(['history', 'state']);
    expect(names.filter((name) => name === 'state')).toHaveLength(11);
    expect(names.filter((name) => name === 'sample')).toHaveLength(2);
  });

  test('/events sends a client that reconnects only the samples since', async () => {
    const clock = manualClock();
    const { url } = await aServer(() => aMoment(), { clock });
    await clock.advance(30_000);
    const first = await listenTo(`${url}/events`);
    await waitUntil(() => first.names().length >= 2, { what: 'the first history' });
    const [, id = ''] = /^id: (\d+)$/m.exec(first.text()) ?? [];
    await clock.advance(10_000);

    const again = await listenTo(`${url}/events`, { 'last-event-id': id });
    await waitUntil(() => again.names().length >= 2, { what: 'the second history' });

    const samplesOf = (text: string) => JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '').samples;
    expect(samplesOf(first.text()).length).toBeGreaterThan(4);
    expect(samplesOf(again.text()).map(({ at }: { at: number }) => at - Number(id))).toEqual([
      5_000, 10_000,
    ]);
  });

  test('/events: the text of a record starts no event of its own', async () => {
    const { url } = await aServer(() => aMoment({ sinks: [aSink({ error: aFailure(evil) })] }));

    const received = await listenTo(`${url}/events`);
    await waitUntil(() => received.names().length >= 2, { what: 'two events' });

    expect(received.names().slice(0, 2)).toEqual(['history', 'state']);
    const [, state = ''] = received.text().split('\n\n');
    const reported = JSON.parse(state.split('\n')[1]?.slice('data: '.length) ?? '');
    expect(reported.sinks[0].error.message).toBe(evil);
  });

  test('/events is refused to more listeners than there is room for, until one leaves', async () => {
    const { url } = await aServer(() => aMoment());
    const listeners = [];
    for (let count = 0; count < 16; count += 1) listeners.push(await listenTo(`${url}/events`));

    const refused = await ask(`${url}/events`);
    listeners[0]?.leave();
    const next = await waitUntil(
      async () => {
        const received = await listenTo(`${url}/events`);
        return received.status === 200 && received;
      },
      { what: 'room for a listener' },
    );

    expect(refused.status).toBe(503);
    expect(next.status).toBe(200);
  });

  test('/tail sends events in the requested form and with the requested filter', async () => {
    const { url } = await aServer(() => aMoment(), { tap: aTap(['one', evil, 'three']) });

    const received = await listenTo(`${url}/tail?form=json&text=script`);
    await waitUntil(() => received.names().length > 0, { what: 'events' });

    expect(received.names()).toEqual(['events']);
    const reported = JSON.parse(/^data: (.*)$/m.exec(received.text())?.[1] ?? '');
    expect(reported.lines.map(({ text }: { text: string }) => text)).toEqual([evil]);
    expect(reported).toMatchObject({ looked: 3, missed: 0, unjudged: 0 });
  });

  test('/tail reports the error in a filter', async () => {
    const { url } = await aServer(() => aMoment(), { tap: aTap([]) });

    const refused = await ask(`${url}/tail?where=not+CEL`);

    expect(refused).toMatchObject({ status: 400, body: 'where: not CEL\n' });
  });

  test('/tail is not there where events are not to be shown', async () => {
    const { url } = await aServer(() => aMoment());

    const report = JSON.parse((await ask(`${url}/status.json`)).body);

    expect((await ask(`${url}/tail`)).status).toBe(404);
    expect(report.tail_forms).toBe(null);
  });

  test('/tail is refused to more readers than there is room for, until one leaves', async () => {
    const { url } = await aServer(() => aMoment(), { tap: aTap(['one']) });
    const readers = [];
    for (let count = 0; count < 4; count += 1) readers.push(await listenTo(`${url}/tail`));

    const refused = await ask(`${url}/tail`);
    readers[0]?.leave();
    const hasContact = async () => (await listenTo(`${url}/tail`)).status === 200;
    await waitUntil(hasContact, { what: 'room for a reader' });

    expect(refused.status).toBe(503);
  });

  test('an unknown path is not found, and no path leads out of the page’s folder', async () => {
    const { url } = await aServer(() => aMoment());
    const paths = [
      '/no',
      '/page',
      '/../status-server.ts',
      '/%2e%2e/log.ts',
      '/constructor',
      '//',
      '/*',
    ];

    const answers = await Promise.all(paths.map((path) => ask(url, { path })));

    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 404));
  });
});

describe('a silent client', () => {
  /** As many as this, each back as soon as it was disconnected. */
  function silentCallers(url: string, count: number) {
    const { hostname, port } = new URL(url);
    const ends: (() => void)[] = [];
    const said = { come: 0, gone: 0 };
    let over = false;
    const call = (index: number) => {
      if (over) return;
      const socket = connect(Number(port), hostname, () => {
        said.come += 1;
        if (index % 2 === 0) socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1');
      });
      ends[index] = () => socket.destroy();
      socket.on('data', () => {});
      socket.on('error', () => {});
      socket.on('close', () => {
        said.gone += 1;
        call(index);
      });
    };
    for (let index = 0; index < count; index += 1) call(index);
    afterThisTest(() => {
      over = true;
      for (const end of ends) end();
    });
    return said;
  }

  test('is disconnected, with half a request or none', async () => {
    const { url } = await aServer(() => aMoment());
    const begun = performance.now();

    const said = silentCallers(url, 64);
    await waitUntil(() => said.gone >= 64, { what: 'the end of all' });

    // 3 to 4 s on an idle machine; it was half a minute.
    expect(performance.now() - begun).toBeLessThan(20_000);
  });

  test('delays no probe and no reader, whichever client connected first', async () => {
    const { url } = await aServer(() => aMoment());
    const listener = await listenTo(`${url}/events`);

    const said = silentCallers(url, 700);
    await waitUntil(() => said.come >= 700, { what: 'the crowd' });
    const answers = [];
    for (const path of ['/healthz', '/readyz', '/metrics', '/status.json', '/healthz']) {
      answers.push((await ask(`${url}${path}`)).status);
    }
    listener.leave();

    expect(answers).toEqual([200, 200, 200, 200, 200]);
    expect(listener.names()).toContain('state');
  });

  test('more listeners than there is room for leave room for probes', async () => {
    const { url } = await aServer(() => aMoment());
    const statuses = [];
    for (let n = 0; n < 20; n += 1) statuses.push((await listenTo(`${url}/events`)).status);

    expect(statuses).toContain(503);
    expect((await ask(`${url}/healthz`)).status).toBe(200);
  });
});

describe('its life', () => {
  test('an address that is in use is reported with the next step', async () => {
    const { url } = await aServer(() => aMoment());
    const port = Number(new URL(url).port);

    await expect(aServer(() => aMoment(), { port })).rejects.toMatchObject({
      code: 'config_invalid',
      message: `serving the status on 127.0.0.1:${port}: another program listens there already (EADDRINUSE)`,
      next: 'Choose another address as status.listen, or stop the process that uses this one.',
    });
  });

  test('close ends listeners, and the port is free', async () => {
    const server = await aServer(() => aMoment());
    const received = await listenTo(`${server.url}/events`);

    await server.close();
    await received.ended;

    await expect(ask(server.url)).rejects.toThrow('ECONNREFUSED');
  });

  test('a look that fails is an answer, not the end', async () => {
    let broken = false;
    const { url } = await aServer(() => {
      if (broken) throw new Error('no sight');
      return aMoment();
    });

    broken = true;
    const during = await ask(`${url}/metrics`);
    broken = false;

    expect(during).toMatchObject({ status: 500 });
    expect(during.body).not.toContain('no sight');
    expect((await ask(`${url}/metrics`)).status).toBe(200);
  });
});
