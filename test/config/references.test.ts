// References and secrets: where `${env:…}` and `${file:…}` are allowed, the values they become, that secrets are read
// again at each use, and that no value of a reference, and no secret at all, ever gets into a message.

import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigError, parseConfig } from '../../src/config/config.ts';
import { anyText } from '../support/any-text.ts';
import { aConfig, configEnv, flawLines, withFirst } from './config-text.ts';

const isLong = process.env.SLUICE_TEST_LONG === '1';

function stateDir(written: string, surroundings = configEnv()): string {
  const config = parseConfig(
    aConfig({ top: `state: { dir: ${written} }` }),
    'c.yaml',
    surroundings,
  );
  return config.state.dir;
}

test.each([
  ['/a/${env:ONE}/b', '/a/1/b'],
  ['"/a/${env:ONE}"', '/a/1'],
  ["'/a/${env:ONE}'", '/a/1'],
  ['/${env:ONE}${env:TWO}/${file:/f}', '/12/from file'],
  ['/${env:NONE:-x}', '/x'],
  ['/${env:NONE:-}y', '/y'],
  ['/${env:EMPTY:-x}', '/x'],
  ['/z${env:EMPTY}', '/z'],
  ['/${env:NONE:-a, b [c]: #d}', '/a, b [c]: #d'],
  ['/$${env:ONE}', '/${env:ONE}'],
  ['/$$${env:ONE}', '/$1'],
  ['/pa$$word$', '/pa$$word$'],
  ['/a$1', '/a$1'],
  ['/ü${env:ONE}😀', '/ü1😀'],
])('parseConfig reads %s as %s', (written, meant) => {
  const surroundings = configEnv({ ONE: '1', TWO: '2', EMPTY: '' }, { '/f': 'from file\n' });

  expect(stateDir(written, surroundings)).toBe(meant);
});

test.each([
  ['{ type: http, url: "${env:EMPTY}" }', '${env:EMPTY}'],
  ['{ type: splunk_hec, url: "https://s.example", token: "${file:/empty}" }', '${file:/empty}'],
  ['{ type: file, path: ./x, batch: { events: "${env:EMPTY}" } }', '${env:EMPTY}'],
])(
  'a reference that gives an empty text is named, not the form of the value: %s',
  (sink, reference) => {
    const surroundings = configEnv({ EMPTY: '' }, { '/empty': '\n' });

    const lines = flawLines(aConfig({ sinks: `  s: ${sink}` }), surroundings);

    expect(lines).toEqual([expect.stringMatching(/^c\.yaml:\d+:\d+ sinks\.s\./)]);
    expect(lines[0]).toContain(`: ${reference} gives an empty text; give it a value`);
  },
);

test.each([
  ['a\n', 'a'],
  ['a\r\n', 'a'],
  ['a\n\n', 'a'],
  ['a\r\r\n', 'a'],
  ['a ', 'a'],
  ['\ufeffa\n', 'a'],
  [' a\nb\n', ' a\nb'],
])(
  'a file reference loses its byte order mark and the white space at its end: %j',
  (text, value) => {
    expect(stateDir('/x${file:/f}', configEnv({}, { '/f': text }))).toBe(`/x${value}`);
  },
);

test('references stand unquoted in { } and [ ], as in the reference page', () => {
  const upstreams =
    '  ops: { api: ${env:API}, base_url: ${env:URL}, companies: [${env:C1}, "${env:C2}"],' +
    ' auth: { client_id: ${env:ID}, client_secret: ${file:/run/secrets/edge}, scope: u } }';
  const env = { API: 'services', URL: 'https://x', C1: 'c-1', C2: 'c-2', ID: 'id' };
  const sources = '  web: { type: logs, upstream: ops, path: /x }';

  const config = parseConfig(
    aConfig({ upstreams, sources }),
    'c.yaml',
    configEnv(env, { '/run/secrets/edge': 's' }),
  );

  expect(config.upstreams.ops).toMatchObject({ api: 'services', companies: ['c-1', 'c-2'] });
  expect(config.upstreams.ops?.auth.client_secret?.reveal()).toBe('s');
});

test('a whole reference becomes a number or a flag where one is expected, and stays text elsewhere', () => {
  const env = { N: '7', HEX: '0x10', B: 'true', TEXT: '12345', ID: 'null', F: '0.5' };
  const upstreams =
    '  edge: { api: unified, base_url: "http://127.0.0.1/v1", allow_http: ${env:B}, auth: { api_key: ${env:TEXT} } }\n' +
    '  ops: { api: services, base_url: "https://x", companies: [c], auth: { client_id: a, client_secret: b, scope: c } }';
  const sources =
    '  audit: { type: audit_events, upstream: edge, page_limit: ${env:N}, id: ${env:ID} }\n' +
    '  fw: { type: firewall, upstream: ops, brake: { share: "${env:F}", count: ${env:HEX} } }';

  const config = parseConfig(aConfig({ upstreams, sources }), 'c.yaml', configEnv(env));

  expect(config.upstreams.edge).toMatchObject({ allow_http: true });
  expect(config.upstreams.edge?.auth.api_key?.reveal()).toBe('12345');
  expect(config.sources.audit?.settings).toMatchObject({ page_limit: 7, id: 'null' });
  expect(config.sources.fw?.settings).toMatchObject({ brake: { share: 0.5, count: 16 } });
});

test('a value from a reference is named by the reference', () => {
  const lines = flawLines(
    aConfig({ top: 'log: { level: ${env:LEVEL} }' }),
    configEnv({ LEVEL: 'loud' }),
  );

  expect(lines).toEqual([
    'c.yaml:1:15 log.level: expected one of debug, info, warn, error, found the value of ${env:LEVEL}',
  ]);
});

test.each([
  [
    '${env:NONE}',
    'the environment variable NONE is not set. Set NONE, or give a default: ${env:NONE:-default}.',
  ],
  [
    '${file:/none}',
    'the file /none cannot be read: there is no such file. Create the file, or correct its path.',
  ],
  ['${NONE}', 'a reference is written ${env:NONE}; a literal ${ is written $${'],
  ['${vault:x}', 'a reference is written ${env:NAME}, ${file:/path} or ${exec:COMMAND}; a literal'],
  ['"${env:1X}"', 'a reference is written ${env:NAME}, ${file:/path} or ${exec:COMMAND}'],
  ['"${env:X"', 'a reference begins with ${ and has no }'],
])(
  'parseConfig reports the reference %s at its location, and nothing that follows from it',
  (written, said) => {
    const lines = flawLines(aConfig({ top: `state: { dir: ${written} }` }));

    expect(lines).toEqual([expect.stringContaining(`c.yaml:1:15 state.dir: ${said}`)]);
  },
);

test('a required key whose reference cannot be read is not reported as missing', () => {
  const lines = flawLines(withFirst('sinks', '  disk: { type: file, path: ${env:NONE} }'));

  expect(lines).toEqual([
    expect.stringContaining('sinks.disk.path: the environment variable NONE'),
  ]);
});

test('variables that every object has are not set', () => {
  expect(flawLines(aConfig({ top: 'state: { dir: "${env:constructor}" }' }))).toHaveLength(1);
});

test('a secret is read again each time it is revealed', () => {
  const env: Record<string, string> = { TOKEN: 'first' };
  const files: Record<string, string> = { '/key': 'one\n' };
  const upstreams =
    '  edge: { api: unified, base_url: "https://x", auth: { api_key: ${file:/key} } }';
  const sinks =
    '  post: { type: http, url: "https://x/", headers: { Authorization: "Bearer ${env:TOKEN}" } }';
  const config = parseConfig(aConfig({ upstreams, sinks }), 'c.yaml', configEnv(env, files));
  const key = () => config.upstreams.edge?.auth.api_key?.reveal();
  const headers = config.sinks.post?.settings.headers as Record<string, { reveal(): string }>;
  const before = [key(), headers.Authorization?.reveal()];

  env.TOKEN = 'second';
  files['/key'] = 'two\n';
  const after = [key(), headers.Authorization?.reveal()];

  expect(before).toEqual(['one', 'Bearer first']);
  expect(after).toEqual(['two', 'Bearer second']);
  delete env.TOKEN;
  files['/key'] = '';
  expect(key).toThrow('${file:/key} gives an empty text');
  expect(() => headers.Authorization?.reveal()).toThrow(
    'the environment variable TOKEN is not set',
  );
});

const canary = 'hunter2canary';

test('a config cannot be made to print its secrets', () => {
  const upstreams = `  edge: { api: unified, base_url: "https://x", auth: { api_key: ${canary} } }`;
  const config = parseConfig(
    aConfig({ upstreams, top: 'status: { listen: "h:1", token: ${env:T} }' }),
    'c.yaml',
    configEnv({ T: canary }),
  );

  const printed = JSON.stringify(config) + inspect(config, { depth: 20, showHidden: true });

  expect(config.status?.token?.reveal()).toBe(canary);
  expect(printed).toContain('[secret]');
  expect(printed).not.toContain(canary);
});

/** Everything that an error shows when it is printed, logged or inspected. */
function everythingOf(error: unknown): string {
  return `${inspect(error, { depth: 20, showHidden: true })}${JSON.stringify(error)}${String(error)}`;
}

test.each([
  `client_secret: !${canary}`,
  `client_secret: !<${canary}> x`,
  `client_secret: *${canary}`,
  `client_secret: &${canary} [x]`,
  `client_secret: &a &${canary} x`,
  `client_secret: @${canary}`,
  `client_secret: %${canary}`,
  `client_secret: "${canary}`,
  `client_secret: "\\q${canary}"`,
  `client_secret: "x" ${canary}`,
  `client_secret: |${canary}`,
  `client_secret: ${canary}: x`,
  `client_secret: {${canary}: 1}`,
  `client_secret: {${canary}}`,
  `client_secret: [${canary}]`,
  `client_secret: [${canary}`,
  `client_secret:${canary}`,
  `{ client_id: a, client_secret:${canary} }`,
  `{ client_id: a, "client_secret":${canary}: }`,
  'client_secret: ${env:CANARY}\n      unknown: ${env:CANARY}',
  'api_key: ${file:/canary}\n      basic_encoding: ${env:CANARY}',
  'api_key: ${env:CANARY}\n      token_url: ${env:CANARY}',
])('no error of %j holds the secret', (auth) => {
  const upstreams = `  edge:\n    api: unified\n    base_url: https://x\n    auth:\n      ${auth}`;
  let caught: unknown;
  try {
    parseConfig(
      aConfig({ upstreams }),
      'c.yaml',
      configEnv({ CANARY: canary }, { '/canary': canary }),
    );
  } catch (error) {
    caught = error;
  }

  expect(caught).toBeInstanceOf(ConfigError);
  expect(everythingOf(caught)).not.toContain(canary);
});

const everySetting = `
state: { dir: x, max_bytes: 1GiB, keep: 0s, sync: full }
upstreams:
  edge:
    api: unified
    base_url: https://x
    auth: { client_id: i, client_secret: s, scope: s, token_url: https://y, basic_encoding: raw }
    tls: { min_version: TLSv1.3, server_name: x }
    allow_http: false
    throttle: [{ path: /x, requests: 6, per: 1m }]
    rate_limit_pause: 1s
  ops:
    api: services
    base_url: https://x
    auth: { client_id: i, client_secret: s, scope: s }
    companies: [a, b]
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 5, order: auto, start: now, id: id, time: [a] }
  web:
    type: logs
    upstream: ops
    schedule: "* * * * *"
    timezone: UTC
    path: /x/{company_id}
    pagination: { style: cursor, items: data }
    mapping: { class: network_activity, fields: { src_endpoint.ip: a, dst_endpoint.ip: b } }
  fw: { type: firewall, upstream: ops, resources: [objects], settle: 1m, brake: { share: 0.3, count: 5 } }
sinks:
  siem: { type: syslog, address: "tls://x:1", framing: newline, facility: local1, app_name: a, tls: { server_name: b } }
  siem2: { type: syslog, address: "udp://x:1", format: { type: syslog, message: { type: cef, vendor: v } } }
  lake: { type: kafka, brokers: ["x:1"], topic: t, key: uid, sasl: { mechanism: plain, username: u, password: p } }
  otel: { type: otlp, url: "http://x/", headers: { A: b }, compression: gzip, timeout: 1s }
  disk: { type: file, path: p, rotate: { bytes: 1MiB, every: 1h }, compress: gzip, batch: { events: 5, wait: 1s } }
routes:
  - { from: [audit], to: [disk], where: "event.x > 1", redact: [a.b] }
status: { listen: "h:1", token: t }
log: { level: info }
`;

test('no setting that a reference fills gets into an error, whichever it is', () => {
  // Each value of the text above, by its path; keys stay.
  const places = [
    ...everySetting.matchAll(/(?<=[:,[] ?)(?:"[^"\n]*"|[\w./{}-]+(?::\/\/\w+)?)(?=[,\]} \n])/g),
  ];
  const shapes = [
    canary,
    `${canary}://x:1`,
    `x://${canary}:70000`,
    `a ${canary} b`,
    `1${canary}`,
    `${canary}.x`,
    `"${canary}`,
  ];
  expect(places.length).toBeGreaterThan(90);
  let refused = 0;
  // Of each three values one has these shapes, so that neighbours, which are of one block, have all.
  const isTried = (place: number, shape: number) => isLong || (place + shape) % 3 === 0;

  for (const [at, place] of places.entries()) {
    for (const shape of shapes.filter((_, index) => isTried(at, index))) {
      const text = `${everySetting.slice(0, place.index)}\${env:V}${everySetting.slice(place.index + place[0].length)}`;
      try {
        parseConfig(text, 'c.yaml', configEnv({ V: shape }));
      } catch (error) {
        refused += 1;
        expect(error).toBeInstanceOf(ConfigError);
        expect(`${error}${JSON.stringify(error)}`).not.toContain(canary);
      }
    }
  }

  expect(refused).toBeGreaterThan(isLong ? 200 : 70);
});

test('parseConfig throws nothing but ConfigError, whatever the text', () => {
  const piece = fc.oneof(
    fc.constantFrom(...everySetting.split(/(?<=[\s:,{}[\]])/)),
    fc.constantFrom(
      '&a ',
      '*a',
      '!x ',
      '? ',
      '- ',
      '| ',
      '>-\n',
      '"',
      "'",
      '#',
      '%',
      '@',
      '`',
      '<<: ',
      '---\n',
      '...\n',
      '\t',
      '${',
      '${env:V}',
      '$${',
      '}',
      '\u0000',
      '\ufeff',
      '\u2028',
      '\ud800',
      '~',
      '0x',
      '.inf',
      '1e999',
      '99999999999999999999',
    ),
    anyText({ maxLength: 8 }),
  );
  const soup = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));
  const mutated = fc
    .tuple(fc.nat(everySetting.length), fc.nat(30), fc.array(piece, { maxLength: 4 }))
    .map(
      ([at, cut, pieces]) =>
        everySetting.slice(0, at) + pieces.join('') + everySetting.slice(at + cut),
    );

  fc.assert(
    fc.property(fc.oneof(soup, mutated, mutated), (text) => {
      for (const line of flawLines(text, configEnv({ V: 'v' }))) {
        expect(line).toMatch(/^c\.yaml(:\d+:\d+)?( \S.*?)?: \S/);
      }
    }),
    { numRuns: 150 },
  );
});
