// The live tail: the newest events in the form and with the filter that the reader asks for. Nothing is asked of the server until
// the reader wants to watch. New lines come at the end, and the list follows them unless the reader has scrolled away.

import { calledOf } from './cluster.js';
import { at, fill, make } from './dom.js';
import { follow } from './feed.js';
import { number } from './units.js';

const linesMax = 300;
let watching = null;
/** Shards whose events are not shown here. */
let unseen = [];

/** Makes the form work. `locked` is called where a token is needed. */
export function keepTail(locked) {
  const form = at('tail');
  // Not every browser lets the keyboard reach what scrolls.
  at('lines').tabIndex = 0;
  at('wrap').checked = matchMedia('(max-width: 760px)').matches;
  wrap();
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (watching === null) watch(locked);
    else stop('Stopped.');
  });
  // A changed wish is watched at once, and one that is being typed when it is done.
  form.addEventListener('change', ({ target }) => {
    if (target.id === 'wrap') wrap();
    else if (watching !== null) watch(locked);
  });
}

function wrap() {
  at('lines').classList.toggle('wrapped', at('wrap').checked);
}

/** The forms that the server offers, which a reload of its config may change; null: it shows no events. */
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
      form.startsWith('sink ') ? `as ${form.slice(5)} gets it` : form,
    ),
  );
  select.replaceChildren(...options);
  select.value = forms.includes(chosen) ? chosen : forms[0];
}

/** Says of which shards no event is shown, and who has them, as far as that is known. */
export function nameUnseen(cluster) {
  const { processes = [], shards } = cluster?.standing ?? {};
  const owners = Map.groupBy(unseen, (shard) =>
    processes.find((one) => one.shards?.includes(shard)),
  );
  const parts = Array.from(owners, ([owner, of]) => {
    const who = owner === undefined ? '' : ` (on the page of ${calledOf(owner)})`;
    return `shard${of.length === 1 ? '' : 's'} ${of.join(', ')}${who}`;
  });
  const all = shards === undefined ? '' : ` of ${number(shards)}`;
  const told = `Not shown here, since this process does not work on them${all}: ${parts.join('; ')}.`;
  fill(at('tail-unseen'), unseen.length === 0 ? '' : told);
}

function watch(locked) {
  watching?.abort();
  watching = new AbortController();
  const { signal } = watching;
  const wish = new URLSearchParams(new FormData(at('tail')));
  let totals = null;
  at('lines').hidden = false;
  press(true);
  void follow(`/tail?${wish}`, {
    signal,
    // Also after a break: the newest events are told anew.
    opened() {
      totals = { shown: 0, looked: 0, missed: 0, unjudged: 0 };
      at('lines').replaceChildren();
      tell('Waiting for events.');
    },
    heard(_name, take) {
      if (!signal.aborted) show(take, totals);
    },
    refused: (text) => stop(text, 'bad-text'),
    locked(wasWrong) {
      stop('A token is needed.');
      locked(wasWrong);
    },
  });
}

function stop(text, mood) {
  watching?.abort();
  watching = null;
  press(false);
  tell(text, mood);
  unseen = [];
  nameUnseen(null);
}

function press(pressed) {
  at('watch').setAttribute('aria-pressed', String(pressed));
  at('watch').textContent = pressed ? 'Stop' : 'Watch';
}

function tell(text, mood = 'quiet') {
  const node = at('tail-told');
  node.className = mood;
  // What changes twice a second is not to be read out.
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
    totals.missed === 0 ? '' : `${number(totals.missed)} more went by too quickly`,
    totals.unjudged === 0
      ? ''
      : `${number(totals.unjudged)} where the filter failed, which a route would let pass`,
  ];
  tell(`${parts.filter((part) => part !== '').join('; ')}.`);
}
