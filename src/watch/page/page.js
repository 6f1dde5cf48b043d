// The page: listens to /events and draws what it is told. When the connection breaks, the page says so, keeps the last
// state on screen, and comes back by itself.

import { drawCharts, forgetCharts } from './charts.js';
import { drawCluster } from './cluster.js';
import { at, fill, make } from './dom.js';
import { follow, send } from './feed.js';
import { drawJourney, keepJourney, moodOf, worstFirst } from './journey.js';
import {
  conditionParts,
  matterPart,
  sinkTable,
  spoolFacts,
  streamTable,
  successionParts,
  upstreamParts,
} from './parts.js';
import { keepTail, nameUnseen, offerForms } from './tail.js';
import { keepTheme } from './theme.js';
import { count, number, span } from './units.js';

const samplesMax = 720;
/** Streams that stand there before the reader asks for more. */
const streamsAtFirst = 12;
const typingMs = 250;
const tickMs = 1000;
/** Without news for so long, the connection is taken to be gone. */
const silentMsMax = 5_000;

let listening = new AbortController();
let samples = [];
let stepMs = 5000;
let lastState = null;
let lastCluster = null;
let heardAt = 0;
let drawnAt = 0;
let showAll = false;

keepTheme(() => {
  forgetCharts();
  drawCharts(at('charts'), samples, stepMs);
});
keepJourney(at('journey'));
keepTail(askForToken);
keepSearch();
for (const id of ['streams', 'sinks']) at(id).addEventListener('click', keepRetry);
listen();
setInterval(tick, tickMs);
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
    opened: () => {},
    heard(name, told) {
      if (!signal.aborted) hear(name, told);
    },
    refused: () => {},
    locked: askForToken,
  });
}

/** What is asked of stream or sink whose button was pressed shows in its row with the next news. */
async function keepRetry({ target }) {
  const name = target.getAttribute('data-retry');
  if (name === null) return;
  target.disabled = true;
  const wrong = await send(`/retry?${new URLSearchParams({ name })}`);
  target.disabled = false;
  target.classList.toggle('bad-text', wrong);
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
  if (name === 'state') {
    heardAt = Date.now();
    lastState = told;
    show('status');
    draw(told);
    return;
  }
  if (name === 'cluster') {
    lastCluster = told;
    if (lastState !== null) draw(lastState);
    return;
  }
  if (name === 'history') stepMs = told.step_ms;
  const since = samples.at(-1)?.at ?? 0;
  const more = (name === 'history' ? told.samples : [told]).filter((sample) => sample.at > since);
  samples = [...samples, ...more].slice(-samplesMax);
  drawCharts(at('charts'), samples, stepMs);
}

/** Times and countdowns go on where news come less often than each second, or stop coming. */
function tick() {
  if (!at('status').hidden && Date.now() - drawnAt >= tickMs) draw(lastState);
}

function draw(state) {
  drawnAt = Date.now();
  const now = Date.parse(state.at) + drawnAt - heardAt;
  drawVerdict(state, now);
  fill(at('attention'), ...matterParts(state));
  drawJourney(at('journey'), state);
  if (lastCluster !== null) drawCluster(lastCluster, now);
  nameUnseen(lastCluster);
  drawStreams(state, now);
  fill(at('spool'), ...spoolFacts(state.spool, now));
  fill(at('sinks'), sinkTable(state.sinks, now));
  fill(at('upstreams'), ...upstreamParts(state));
  at('moves').hidden = state.successions.length === 0;
  fill(at('successions'), ...successionParts(state));
  fill(at('conditions'), ...conditionParts(state, now));
  offerForms(state.tail_forms);
}

/** Is all well? What was true before the connection broke may not be true any more. */
function drawVerdict(state, now) {
  const silentMs = Date.now() - heardAt;
  const isSilent = silentMs > silentMsMax;
  const urgent = state.attention.filter(({ mood }) => mood === 'bad').length;
  const rest = state.attention_total - urgent;
  if (isSilent) verdict('warn', 'no connection');
  else if (!state.ready) verdict('bad', needsAttention(urgent));
  else if (rest > 0) verdict('warn', `all goes on; ${count(rest, 'thing')} to look at`);
  else verdict('good', 'all is well');
  document.title = isSilent ? '(?) sluice' : state.ready ? 'sluice' : `(${urgent}) sluice`;
  const runsFor = now - Date.parse(state.started_at);
  at('link').textContent = isSilent
    ? `no news for ${span(silentMs)}; trying again`
    : `live · running for ${span(runsFor)}`;
  at('link').className = isSilent ? 'warn-text' : 'quiet';
}

function needsAttention(urgent) {
  return `${count(urgent, 'thing')} ${urgent === 1 ? 'needs' : 'need'} attention`;
}

/** Where much is wrong, the gravest comes first. */
const mattersMax = 8;

function matterParts({ attention, attention_total }) {
  const shown = attention.slice(0, mattersMax).map(matterPart);
  const hidden = attention_total - shown.length;
  if (hidden === 0) return shown;
  return [...shown, make('p', { class: 'matter quiet' }, `and ${number(hidden)} more`)];
}

function drawStreams(state, now) {
  const { streams, streams_found, streams_total } = state;
  const shown = showAll ? streams : worstFirst(streams, streamsAtFirst, moodOf);
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
