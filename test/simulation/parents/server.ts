// The parents as they truly are, and the server that shows them: entries that are added to
// timelines, objects that change until they are done, parents that come, are denied and go. It
// notes what it showed of whom, and what went wrong.

import type { Answer, Failure } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Body, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import { cursorIn, okOf } from '../../support/made-up-list.ts';
import type { Traits } from './traits.ts';

/** One parent. */
export interface Parent {
  readonly id: string;
  readonly since: number;
  /** Of a timeline, oldest first; of an object its states, of which the last stands. */
  readonly texts: string[];
  /** When the last of them came. */
  changedAt: number;
  /** It is refused with this. */
  status: number | null;
  /** Since when it has been rejected, without a request in between. */
  refusedSince: number | null;
  isFinal: boolean;
  /** It was answered as it stands when it changed no more. */
  isDone: boolean;
  /** Requests since that, but for one where nothing else was answered. */
  asksWhenDone: number;
  /** All that was ever shown of the parent. */
  readonly shown: Set<string>;
  /** The other source has shown it since it was refused. */
  isNoticed: boolean;
}

/** An error in a good answer's clothing. */
const nonsense = okOf('{"error":{"code":"later"}}');

/** All parents, and the server. */
export class ModelParents {
  readonly parents = new Map<string, Parent>();
  /** While it is true, answers go wrong now and then. */
  troubled = true;
  outageUntil = 0;
  /** The parent whose list is bent, and until when. */
  bent: { readonly id: string; readonly until: number } | null = null;
  readonly #traits: Traits;
  readonly #random: Random;
  #count = 0;
  /** The last request was not answered. */
  #isRefusing = false;

  constructor(traits: Traits, random: Random) {
    this.#traits = traits;
    this.#random = random;
  }

  add(now: number): Parent {
    const parent: Parent = {
      ...{ id: `p${this.parents.size}`, since: now, texts: [], changedAt: now, status: null },
      ...{ refusedSince: null, isFinal: false, isDone: false, asksWhenDone: 0 },
      ...{ shown: new Set(), isNoticed: true },
    };
    this.parents.set(parent.id, parent);
    this.grow(parent, now);
    return parent;
  }

  /** Something new of a parent. */
  grow(parent: Parent, now: number): void {
    if (parent.isFinal || parent.texts.length >= 12) return;
    const isList = this.#traits.of === 'list';
    parent.isFinal = !isList && parent.texts.length > 0 && this.#random.chance(0.2);
    this.#count += 1;
    const n = this.#count;
    const own = isList
      ? { id: `r${n}` }
      : { id: parent.id, status: parent.isFinal ? 'done' : 'on' };
    parent.texts.push(JSON.stringify({ ...own, parent: parent.id, n, text: 'as it was' }));
    parent.changedAt = now;
  }

  /** The answer to one request at a moment. */
  answer(request: UpstreamRequest, now: number): Answer<Body> {
    const answer = this.#answer(request, now);
    this.#isRefusing = answer.outcome !== 'ok' || answer === nonsense;
    return answer;
  }

  #answer(request: UpstreamRequest, now: number): Answer<Body> {
    const { outage } = this.#traits;
    if (now < this.outageUntil && outage !== null) return failure(outage);
    if (this.#chance(1)) return failure(500);
    const id = decodeURIComponent(request.path.slice(1));
    const parent = this.parents.get(id);
    if (parent === undefined) return failure(404);
    // Another rejected one is a reason to check whether anything is answered at all.
    const isAside = parent.isDone && this.#isRefusing;
    if (parent.status !== null) {
      if (!isAside) parent.refusedSince ??= now;
      return failure(parent.status);
    }
    // One that was noticed and is rejected is requested again, seldom: its present state is unknown.
    if (parent.isDone && !isAside) parent.asksWhenDone += 1;
    if (this.#chance(0.3)) return failure(404);
    if (this.#chance(0.3)) return nonsense;
    parent.refusedSince = null;
    parent.isDone = parent.isFinal;
    return this.#traits.of === 'list' ? this.#page(parent, request, now) : this.#object(parent);
  }

  #object({ texts, shown }: Parent): Answer<Body> {
    const text = texts.at(-1) ?? '';
    shown.add(text);
    return okOf(this.#random.chance(0.3) ? `{"data":${text}}` : text);
  }

  #page(parent: Parent, request: UpstreamRequest, now: number): Answer<Body> {
    const isBent = this.bent?.id === parent.id && now < this.bent.until;
    const { bent, pageRows } = this.#traits;
    const first = parent.texts[0] ?? '';
    const rewritten = [first.replace('as it was', 'rewritten'), ...parent.texts.slice(1)];
    const shorter = parent.texts.slice(0, -1);
    const texts = !isBent ? parent.texts : bent === 'rewritten' ? rewritten : shorter;
    const from = Number(cursorIn(request) ?? 0);
    const page = texts.slice(from, from + pageRows);
    for (const text of page) parent.shown.add(text);
    const to = from + page.length;
    const next = to < texts.length ? String(to) : null;
    return okOf(`{"data":[${page.join(',')}],"next_cursor":${JSON.stringify(next)}}`);
  }

  #chance(share: number): boolean {
    return this.troubled && this.#random.chance(this.#traits.trouble * share);
  }
}

function failure(status: number): Failure {
  const cause = new ExportError('upstream_unreachable', `simulating: ${status}`, {
    next: 'nothing',
  });
  const outcome = status >= 500 ? 'retry' : status === 404 ? 'refused' : 'denied';
  return { outcome, status, cause };
}
