// The page: listens to /events with the token, where one is needed, and draws what it is told. EventSource cannot send a
// header and a token does not belong into an address, so the stream is read with fetch. When the connection breaks, the
// page says so, keeps the last state on screen, and comes back by itself.

import { drawCharts } from './charts.js';
import { ago, fill, make, number, rate, size, span } from './dom.js';
import { drawJourney, moodOf, sign } from './journey.js';

const samplesMax = 720;
const at = (id) => document.getElementById(id);
let samples = [];
let lastState = null;
let heardAt = 0;

void follow();
setInterval(drawLink, 1000);
at('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('sluice-token', at('token').value);
  at('token').value = '';
  void follow();
});
keepTheme();

/** Listens for as long as the page is open. */
async function follow() {
  for (let waitMs = 500; ; waitMs = Math.min(5000, waitMs * 2)) {
    try {
      const token = sessionStorage.getItem('sluice-token');
      const headers = token === null ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch('/events', { headers, cache: 'no-store' });
      if (response.status === 401) return askForToken(token !== null);
      if (response.ok) {
        waitMs = 500;
        show('status');
        await listen(response.body);
      }
    } catch {
      // The server is gone or restarting; the line at the top says since when.
    }
    drawLink();
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

function askForToken(wasWrong) {
  sessionStorage.removeItem('sluice-token');
  show('ask');
  at('refused').textContent = wasWrong ? 'That is not the token.' : '';
  verdict('warn', 'a token is needed');
  at('token').focus();
}

function show(id) {
  at('ask').hidden = id !== 'ask';
  at('status').hidden = id !== 'status';
}

/** Server-sent events, as far as our server writes them: one `event` and one `data` line each. */
async function listen(body) {
  let rest = '';
  for await (const text of textOf(body)) {
    const events = (rest + text).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const [name, data] = event.split('\n').map((line) => line.slice(line.indexOf(':') + 2));
      hear(name, JSON.parse(data));
    }
  }
}

async function* textOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  // Safari cannot walk a stream with `for await`.
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

function hear(name, told) {
  heardAt = Date.now();
  if (name === 'history') samples = told.samples;
  if (name === 'sample') samples = [...samples, told].slice(-samplesMax);
  if (name === 'state') {
    lastState = told;
    draw(told);
  } else drawCharts(at('charts'), samples);
}

function draw(state) {
  const now = Date.parse(state.at);
  const count = state.reasons.length;
  if (state.ready) verdict('good', 'all is well');
  else verdict('bad', `${count} ${count === 1 ? 'thing needs' : 'things need'} attention`);
  document.title = state.ready ? 'sluice' : `(${count}) sluice`;
  drawLink();
  fill(at('reasons'), ...state.reasons.map(reason));
  drawJourney(at('journey'), state);
  fill(at('streams'), ...streamParts(state, now));
  fill(at('spool'), ...spoolFacts(state.spool, now));
  fill(at('sinks'), table(sinkHeads, state.sinks.map(sinkRow)));
  fill(at('upstreams'), ...upstreamParts(state, now));
  fill(at('conditions'), ...conditionParts(state, now));
}

function verdict(mood, text) {
  const node = at('verdict');
  node.className = `verdict ${mood}`;
  if (node.textContent !== text) node.textContent = text;
}

function drawLink() {
  const silentMs = Date.now() - heardAt;
  const text =
    heardAt === 0
      ? ''
      : silentMs > 4000
        ? `no news for ${span(silentMs)}; trying again`
        : `live · running for ${span(Date.parse(lastState?.at ?? 0) - Date.parse(lastState?.started_at ?? 0))}`;
  at('link').textContent = text;
  at('link').className = silentMs > 4000 && heardAt > 0 ? 'warn-text' : 'quiet';
}

function reason({ part, message }) {
  return make(
    'p',
    { class: 'reason' },
    sign('bad'),
    make('span', {}, make('strong', {}, part), ` ${message}`),
  );
}

const streamHeads = [
  'Stream',
  'State',
  'Rate',
  'Records',
  'Last poll',
  'Caught up',
  'Order',
  'Checkpoint',
  'Waits for',
];
const sinkHeads = [
  'Sink',
  'State',
  'Rate',
  'Delivered',
  'Backlog',
  'Drained in',
  'Position',
  'Retries',
  'Dead letters',
];

function streamParts(state, now) {
  const rows = state.streams.map((stream) => ({
    mood: moodOf(stream),
    cells: [
      stream.name,
      stream.state,
      rate(stream.records_per_s),
      number(stream.records),
      ago(stream.polled_at, now),
      stream.caught_up_at === null ? 'not yet' : ago(stream.caught_up_at, now),
      stream.order === 'unknown' ? 'not known yet' : (stream.order?.replaceAll('_', ' ') ?? '–'),
      ago(stream.checkpoint_at, now),
      stream.waits_for ?? '–',
    ],
    error: stream.error,
  }));
  const hidden = state.streams_total - state.streams.length;
  const more =
    hidden === 0 ? null : make('p', { class: 'quiet' }, `and ${number(hidden)} more, all well`);
  return [table(streamHeads, rows), more];
}

function sinkRow(sink) {
  return {
    mood: moodOf(sink),
    cells: [
      `${sink.name} (${sink.type})`,
      sink.state,
      rate(sink.events_per_s),
      number(sink.delivered),
      number(sink.backlog),
      sink.backlog === 0 ? 'nothing to do' : span(sink.drained_in_ms),
      number(sink.position),
      number(sink.retries),
      number(sink.dead_letters),
    ],
    error: sink.error,
  };
}

/** A table that becomes a list of cards where it is narrow: each cell knows its head. */
function table(heads, rows) {
  const bodies = rows.map(({ mood, cells, error }) => {
    const [name, ...rest] = cells;
    const tds = rest.map((text, index) => make('td', { 'data-head': heads[index + 1] }, text));
    return make(
      'tbody',
      { class: mood },
      make('tr', {}, make('th', { scope: 'row' }, sign(mood), make('span', {}, name)), ...tds),
      error === null
        ? null
        : make(
            'tr',
            { class: 'error' },
            make('td', { colspan: heads.length }, ...errorParts(error)),
          ),
    );
  });
  const head = heads.map((text) => make('th', { scope: 'col' }, text));
  return make('table', {}, make('thead', {}, make('tr', {}, ...head)), ...bodies);
}

function errorParts({ code, message, next, request_id, trace_id }) {
  const ids = [
    request_id === null ? '' : `request_id ${request_id}`,
    trace_id === null ? '' : `trace_id ${trace_id}`,
  ].filter((text) => text !== '');
  return [
    make('code', {}, code),
    make('span', {}, ` ${message}`),
    ids.length === 0 ? null : make('code', { class: 'ids' }, ids.join(' · ')),
    make('span', { class: 'next' }, next),
  ];
}

function spoolFacts(spool, now) {
  const share = Math.round((spool.bytes / spool.max_bytes) * 100);
  return [
    fact('Held', `${number(spool.events)} events`),
    fact('Size', `${size(spool.bytes)} of ${size(spool.max_bytes)}, ${share}\u00a0%`),
    fact('Oldest read', spool.events === 0 ? 'nothing held' : ago(spool.oldest_at, now)),
    fact('Full in', spool.full_in_ms === null ? 'not in sight' : span(spool.full_in_ms)),
    fact('Events so far', number(spool.end)),
  ];
}

function fact(name, value) {
  return make(
    'div',
    { class: 'fact' },
    make('span', { class: 'quiet' }, name),
    make('strong', {}, value),
  );
}

function upstreamParts({ upstreams }, now) {
  const parts = upstreams.flatMap(({ name, base_url, throttles, end_of_life }) => [
    make('h3', {}, name, make('span', { class: 'quiet' }, ` ${base_url}`)),
    throttles.length === 0
      ? make('p', { class: 'quiet' }, 'No limit is known.')
      : make('ul', {}, ...throttles.map(throttle)),
    ...end_of_life.map((notice) => endOfLife(notice, now)),
  ]);
  return parts;
}

function throttle({ path, wait_ms, limit, remaining }) {
  const budget =
    limit === null && remaining === null ? '' : `, ${remaining ?? '?'} of ${limit ?? '?'} left`;
  const wait = wait_ms > 0 ? `next request in ${span(wait_ms)}` : 'no wait';
  return make('li', {}, make('code', {}, path === '*' ? 'all paths' : path), `: ${wait}${budget}`);
}

function endOfLife({ endpoint, deprecation_at, sunset_at }) {
  const when = sunset_at ?? deprecation_at;
  const date = when === null ? 'without a date' : `as of ${when.slice(0, 10)}`;
  return make('p', { class: 'warn-text' }, `${endpoint} is going away, ${date}.`);
}

function conditionParts({ conditions }, now) {
  if (conditions.length === 0) {
    return [
      make('p', { class: 'quiet' }, 'No gap, reset or lost right was found since the start.'),
    ];
  }
  const items = conditions.map(({ condition, stream, observed_at, message }) =>
    make(
      'li',
      {},
      make('code', {}, condition),
      make('span', {}, ` ${stream}: ${message} `),
      make('span', { class: 'quiet' }, ago(observed_at, now)),
    ),
  );
  return [make('ul', {}, ...items)];
}

/** Light or dark: as the system says until the reader chooses. */
function keepTheme() {
  const button = at('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const chosen = () => localStorage.getItem('sluice-theme');
  const apply = () => {
    const dark = (chosen() ?? (system.matches ? 'dark' : 'light')) === 'dark';
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    button.setAttribute('aria-pressed', String(dark));
  };
  button.addEventListener('click', () => {
    const dark = document.documentElement.dataset.theme === 'dark';
    localStorage.setItem('sluice-theme', dark ? 'light' : 'dark');
    apply();
  });
  system.addEventListener('change', apply);
  apply();
}
