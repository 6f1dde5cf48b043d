// The page: listens to /events and draws what it is told. When the connection breaks, the page says so, keeps the last
// state on screen, and comes back by itself.

import { drawCharts, forgetCharts } from './charts.js';
import { at, fill } from './dom.js';
import { follow } from './feed.js';
import { drawJourney, keepJourney } from './journey.js';
import {
  conditionParts,
  reasonPart,
  sinkTable,
  spoolFacts,
  streamTable,
  upstreamParts,
} from './parts.js';
import { keepTail, offerForms } from './tail.js';
import { keepTheme } from './theme.js';
import { count, number, span } from './units.js';

const samplesMax = 720;
/** Streams that stand there before the reader asks for more. */
const streamsAtFirst = 12;
const typingMs = 250;

let listening = new AbortController();
let samples = [];
let stepMs = 5000;
let lastState = null;
let heardAt = 0;
let showAll = false;

keepTheme(() => {
  forgetCharts();
  drawCharts(at('charts'), samples, stepMs);
});
keepJourney(at('journey'));
keepTail(askForToken);
keepSearch();
listen();
setInterval(drawLink, 1000);
at('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('sluice-token', at('token').value);
  at('token').value = '';
  listen();
});

/** Listens for as long as the page is open, or until something else is sought. */
function listen() {
  listening.abort();
  listening = new AbortController();
  const { signal } = listening;
  const find = at('find').value.trim();
  void follow(find === '' ? '/events' : `/events?${new URLSearchParams({ find })}`, {
    signal,
    since: String(samples.at(-1)?.at ?? ''),
    opened: () => show('status'),
    heard(name, told) {
      if (!signal.aborted) hear(name, told);
    },
    refused: () => {},
    locked: askForToken,
  });
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

function hear(name, told) {
  heardAt = Date.now();
  if (name === 'state') {
    lastState = told;
    draw(told);
    return;
  }
  if (name === 'history') stepMs = told.step_ms;
  const since = samples.at(-1)?.at ?? 0;
  const more = (name === 'history' ? told.samples : [told]).filter((sample) => sample.at > since);
  samples = [...samples, ...more].slice(-samplesMax);
  drawCharts(at('charts'), samples, stepMs);
}

function draw(state) {
  const now = Date.parse(state.at);
  const reasons = state.reasons_total;
  if (state.ready) verdict('good', 'all is well');
  else verdict('bad', `${count(reasons, 'thing')} ${reasons === 1 ? 'needs' : 'need'} attention`);
  document.title = state.ready ? 'sluice' : `(${reasons}) sluice`;
  drawLink();
  drawReasons(state);
  drawJourney(at('journey'), state);
  drawStreams(state, now);
  fill(at('spool'), ...spoolFacts(state.spool, now));
  fill(at('sinks'), sinkTable(state.sinks, now));
  fill(at('upstreams'), ...upstreamParts(state));
  fill(at('conditions'), ...conditionParts(state, now));
  offerForms(state.tail_forms);
}

/** Where thousands fail alike, the first few say why. */
const reasonsMax = 5;

function drawReasons({ reasons, reasons_total }) {
  const hidden = reasons_total - reasonsMax;
  const more = hidden <= 0 ? [] : [{ part: 'and', message: `${number(hidden)} more` }];
  fill(at('reasons'), ...[...reasons.slice(0, reasonsMax), ...more].map(reasonPart));
}

function drawStreams(state, now) {
  const { streams, streams_found, streams_total } = state;
  const shown = showAll ? streams : streams.slice(0, streamsAtFirst);
  fill(at('streams'), streamTable(shown, now));
  const found =
    streams_found === streams_total
      ? count(streams_total, 'stream')
      : `${number(streams_found)} of ${count(streams_total, 'stream')} found`;
  const cut = streams.length < streams_found ? `, the ${streams.length} that need it most` : '';
  const told = `${found}${cut}`;
  if (at('streams-count').textContent !== told) at('streams-count').textContent = told;
  const button = at('more');
  button.hidden = streams.length <= streamsAtFirst;
  button.textContent = showAll
    ? 'Show fewer'
    : `Show ${number(streams.length - streamsAtFirst)} more`;
  button.setAttribute('aria-expanded', String(showAll));
}

function keepSearch() {
  let typing = 0;
  at('find').addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(listen, typingMs);
  });
  at('more').addEventListener('click', () => {
    showAll = !showAll;
    if (lastState !== null) draw(lastState);
  });
}

function verdict(mood, text) {
  const node = at('verdict');
  node.className = `verdict ${mood}`;
  if (node.textContent !== text) node.textContent = text;
}

/** Without news for so long, the connection is taken to be gone. */
const silentMsMax = 5_000;

function drawLink() {
  const silentMs = Date.now() - heardAt;
  const isSilent = heardAt > 0 && silentMs > silentMsMax;
  const runsFor = Date.parse(lastState?.at ?? 0) - Date.parse(lastState?.started_at ?? 0);
  const live = lastState === null ? '' : `live · running for ${span(runsFor)}`;
  at('link').textContent = isSilent ? `no news for ${span(silentMs)}; trying again` : live;
  at('link').className = isSilent ? 'warn-text' : 'quiet';
}
