// One of the two APIs: pages of the ledger as this API shows it, and its faults.

import type { Answer, Failure } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Body, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import { okOf } from '../../support/made-up-list.ts';
import type { Ledger, Shown } from './ledger.ts';
import type { Side, Traits } from './traits.ts';

/** How an API fails. */
export type Status = 401 | 403 | 404 | 410 | 429 | 500;

/** One API. */
export class ModelApi {
  /** While it is true, requests fail now and then. */
  troubled = true;
  /** It answers nothing until then. */
  outage: { readonly until: number; readonly status: Status } | null = null;
  /** It answers nothing any more. */
  dead: Status | null = null;
  readonly side: Side;
  readonly #traits: Traits;
  readonly #ledger: Ledger;
  readonly #random: Random;

  constructor(side: Side, { traits, ledger, random }: Readonly<ApiMeans>) {
    this.side = side;
    this.#traits = traits;
    this.#ledger = ledger;
    this.#random = random;
  }

  /** All that it ever shows. */
  get shown(): readonly Shown[] {
    return this.#ledger.shown[this.side];
  }

  /** What a list shows at a moment; a company's, or of all. */
  rows(company: number | null, now: number): readonly Shown[] {
    return this.shown
      .filter(({ shownAt, goneAt, record }) => {
        const isOf = company === null || record.company === company;
        return isOf && shownAt <= now && now < goneAt;
      })
      .toSorted((a, b) => a.place - b.place);
  }

  /** False: no request is answered at this moment. */
  isUp(now: number): boolean {
    return this.dead === null && (this.outage === null || now >= this.outage.until);
  }

  /** The answer to one request. */
  answer(request: UpstreamRequest, company: number | null, now: number): Answer<Body> {
    const { trouble, paging, pageRows } = this.#traits[this.side];
    if (this.dead !== null) return failure(this.dead);
    if (this.outage !== null && now < this.outage.until) return failure(this.outage.status);
    if (this.troubled && this.#random.chance(trouble)) {
      return failure(this.#random.pick([500, 500, 429, 403]));
    }
    const rows = this.rows(company, now);
    const query = Object.fromEntries(request.query);
    if (paging === 'cursor') {
      const { cursor } = query;
      const after = cursor === undefined ? Number.NEGATIVE_INFINITY : Number(cursor);
      const rest = rows.filter(({ place }) => place > after);
      const page = rest.slice(0, pageRows);
      const next = rest.length > page.length ? String(page.at(-1)?.place) : null;
      return okOf(bodyOf(page, { next_cursor: next }));
    }
    const from = paging === 'page' ? (Number(query.page) - 1) * pageRows : Number(query.offset);
    return okOf(bodyOf(rows.slice(from, from + pageRows), { total: rows.length }));
  }
}

/** What an API is made with. */
interface ApiMeans {
  traits: Traits;
  ledger: Ledger;
  random: Random;
}

function bodyOf(rows: readonly Shown[], envelope: object): string {
  const rest = JSON.stringify(envelope).slice(1);
  return `{"data":[${rows.map(({ text }) => text).join(',')}],${rest}`;
}

function failure(status: Status): Failure {
  const cause = new ExportError('upstream_unreachable', `simulating: ${status}`, {
    next: 'nothing',
  });
  const isDenied = status === 401 || status === 403;
  const outcome = status === 500 || status === 429 ? 'retry' : isDenied ? 'denied' : 'refused';
  return { outcome, status, cause };
}
