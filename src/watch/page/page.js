// The page: follows /events and draws each update. If the connection breaks, the page says so, keeps the last state on
// screen, and reconnects automatically.

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
/** Streams shown before a click on `more`. */
const streamsAtFirst = 12;
const typingMs = 250;
const tickMs = 1000;
/** The connection counts as broken after this time without an update. */
const silentMsMax = 5_000;

let listening = new AbortController();
let samples = [];
let stepMs = 5000;
let lastState = null;
let lastCluster = null;
let receivedAt = 0;
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

/** Follows the updates until the page closes or the search changes. */
function listen() {
  listening.abort();
  listening = new AbortController();
  const { signal } = listening;
  const find = at('find').value.trim();
  void follow(find === '' ? '/events' : `/events?${new URLSearchParams({ find })}`, {
    signal,
    since: String(samples.at(-1)?.at ?? ''),
    opened: () => {},
    received(name, update) {
      if (!signal.aborted) receive(name, update);
    },
    refused: () => {},
    locked: askForToken,
  });
}

/** Retries the stream or sink whose button was pressed. The next update shows the result in its row. */
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
  at('refused').textContent = wasWrong ? 'The token is wrong.' : '';
  verdict('warn', 'token required');
  at('token').focus();
}

function show(id) {
  at('ask').hidden = id !== 'ask';
  at('status').hidden = id !== 'status';
}

function receive(name, update) {
  if (name === 'state') {
    receivedAt = Date.now();
    lastState = update;
    show('status');
    draw(update);
    return;
  }
  if (name === 'cluster') {
    lastCluster = update;
    if (lastState !== null) draw(lastState);
    return;
  }
  if (name === 'history') stepMs = update.step_ms;
  const since = samples.at(-1)?.at ?? 0;
  const more = (name === 'history' ? update.samples : [update]).filter(
    (sample) => sample.at > since,
  );
  samples = [...samples, ...more].slice(-samplesMax);
  drawCharts(at('charts'), samples, stepMs);
}

/** Times and countdowns continue between updates, and without updates. */
function tick() {
  if (!at('status').hidden && Date.now() - drawnAt >= tickMs) draw(lastState);
}

function draw(state) {
  drawnAt = Date.now();
  const now = Date.parse(state.at) + drawnAt - receivedAt;
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

/** The verdict on the whole. Without a connection, the last state may be out of date. */
function drawVerdict(state, now) {
  const silentMs = Date.now() - receivedAt;
  const isSilent = silentMs > silentMsMax;
  const urgent = state.attention.filter(({ mood }) => mood === 'bad').length;
  const rest = state.attention_total - urgent;
  if (isSilent) verdict('warn', 'no connection');
  else if (state.reasons_total > 0) verdict('bad', needsAttention(urgent));
  else if (rest > 0) verdict('warn', `running; ${count(rest, 'thing')} to check`);
  else verdict('good', 'all is well');
  document.title = isSilent
    ? '(?) sluice'
    : state.reasons_total === 0
      ? 'sluice'
      : `(${urgent}) sluice`;
  const runsFor = now - Date.parse(state.started_at);
  at('link').textContent = isSilent
    ? `no update for ${span(silentMs)}; reconnecting`
    : `live · running for ${span(runsFor)} · version ${state.version}`;
  at('link').className = isSilent ? 'warn-text' : 'quiet';
}

function needsAttention(urgent) {
  return `${count(urgent, 'thing')} ${urgent === 1 ? 'needs' : 'need'} attention`;
}

/** Shown items of the attention list; the most severe come first. */
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
  const cut = streams.length < streams_found ? `, the ${streams.length} most urgent` : '';
  const counted = `${found}${cut}`;
  if (at('streams-count').textContent !== counted) at('streams-count').textContent = counted;
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
