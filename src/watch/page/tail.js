// The live tail: the newest events in the chosen form, with the chosen filter. The page requests nothing before the reader
// presses Watch. New lines are appended, and the list follows them unless the reader has scrolled away.

import { calledOf } from './cluster.js';
import { at, fill, make } from './dom.js';
import { follow } from './feed.js';
import { number } from './units.js';

const linesMax = 300;
let watching = null;
/** Shards whose events this page does not show. */
let unseen = [];

/** Connects the form. `locked` is called if a token is required. */
export function keepTail(locked) {
  const form = at('tail');
  // Not every browser lets the keyboard reach a scrolling element.
  at('lines').tabIndex = 0;
  at('wrap').checked = matchMedia('(max-width: 760px)').matches;
  wrap();
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (watching === null) watch(locked);
    else stop('Stopped.');
  });
  // A changed choice applies at once, a typed one when it is complete.
  form.addEventListener('change', ({ target }) => {
    if (target.id === 'wrap') wrap();
    else if (watching !== null) watch(locked);
  });
}

function wrap() {
  at('lines').classList.toggle('wrapped', at('wrap').checked);
}

/** The forms that the server offers; a reload of its config may change them. Null: the server shows no events. */
export function offerForms(forms) {
  at('events').hidden = forms === null;
  const select = at('form');
  const offered = Array.from(select.options, ({ value }) => value);
  if (forms === null || forms.join('\n') === offered.join('\n')) return;
  const chosen = select.value;
  const options = forms.map((form) =>
    make(
      'option',
      { value: form },
      form.startsWith('sink ') ? `as sent to ${form.slice(5)}` : form,
    ),
  );
  select.replaceChildren(...options);
  select.value = forms.includes(chosen) ? chosen : forms[0];
}

/** Names the shards without events on this page, and the processes that have them, if known. */
export function nameUnseen(cluster) {
  const { processes = [], shards } = cluster?.status ?? {};
  const owners = Map.groupBy(unseen, (shard) =>
    processes.find((one) => one.shards?.includes(shard)),
  );
  const parts = Array.from(owners, ([owner, of]) => {
    const who = owner === undefined ? '' : ` (on the page of ${calledOf(owner)})`;
    return `shard${of.length === 1 ? '' : 's'} ${of.join(', ')}${who}`;
  });
  const all = shards === undefined ? '' : ` of ${number(shards)}`;
  const note = `Not shown here, because another process works on them${all}: ${parts.join('; ')}.`;
  fill(at('tail-unseen'), unseen.length === 0 ? '' : note);
}

function watch(locked) {
  watching?.abort();
  watching = new AbortController();
  const { signal } = watching;
  const choices = new URLSearchParams(new FormData(at('tail')));
  let totals = null;
  at('lines').hidden = false;
  press(true);
  void follow(`/tail?${choices}`, {
    signal,
    // Also after a reconnect: the server sends the newest events again.
    opened() {
      totals = { shown: 0, looked: 0, missed: 0, unjudged: 0 };
      at('lines').replaceChildren();
      say('Waiting for events.');
    },
    received(_name, update) {
      if (!signal.aborted) show(update, totals);
    },
    refused: (text) => stop(text, 'bad-text'),
    locked(wasWrong) {
      stop('A token is required.');
      locked(wasWrong);
    },
  });
}

function stop(text, mood) {
  watching?.abort();
  watching = null;
  press(false);
  say(text, mood);
  unseen = [];
  nameUnseen(null);
}

function press(pressed) {
  at('watch').setAttribute('aria-pressed', String(pressed));
  at('watch').textContent = pressed ? 'Stop' : 'Watch';
}

function say(text, mood = 'quiet') {
  const node = at('tail-note');
  node.className = mood;
  // Screen readers must not read a text that changes twice a second.
  node.role = mood === 'quiet' ? null : 'alert';
  fill(node, text);
}

function show({ lines, looked, missed, unjudged, unseen: others = [] }, totals) {
  unseen = others;
  totals.shown += lines.length;
  totals.looked += looked;
  totals.missed += missed;
  totals.unjudged += unjudged;
  const list = at('lines');
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const items = lines.map(({ stream, severity, text }) =>
    make(
      'li',
      { class: severity >= 4 ? 'bad' : severity === 3 ? 'warn' : '', title: stream },
      text,
    ),
  );
  list.append(...items);
  while (list.childElementCount > linesMax) list.firstElementChild.remove();
  if (isAtEnd) list.scrollTop = list.scrollHeight;
  const parts = [
    `${number(totals.shown)} of ${number(totals.looked)} events shown`,
    totals.missed === 0 ? '' : `${number(totals.missed)} more were skipped (too many at once)`,
    totals.unjudged === 0
      ? ''
      : `${number(totals.unjudged)} on which the filter failed (a route passes them)`,
  ];
  say(`${parts.filter((part) => part !== '').join('; ')}.`);
}
