// The two sources of a pair as a config would have them: their streams, and their `succeeds`.

import type { Succession } from '../../../src/contracts/index.ts';
import type { ListStream, Pagination } from '../../../src/contracts/source.ts';
import type { Upstream, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import type { PairedSource } from '../../../src/succession/pairing.ts';
import { madeUpList, pagination } from '../../support/made-up-list.ts';
import { strangerCompany } from './ledger.ts';
import type { Side, SideTraits, Traits } from './traits.ts';

/** A stream of a side, and the company whose list it reads; null: the list of all. */
export interface SideStream {
  readonly stream: ListStream;
  readonly company: number | null;
}

/** The requested list. */
interface Listed {
  readonly name: string;
  readonly company: number | null;
}

/** Name of the source on each side. */
export const sourceOf: Readonly<Record<Side, string>> = { old: 'old_audit', new: 'new_audit' };

/** The streams of a side; `get` answers a request about a company. */
export function streamsOf(
  side: Side,
  traits: Traits,
  get: (request: UpstreamRequest, of: Listed, signal: AbortSignal) => ReturnType<Get>,
): readonly SideStream[] {
  const { perCompany } = traits[side];
  const numbers = Array.from({ length: traits.companies }, (_, n) => n + 1);
  if (side === 'new' && traits.stranger) numbers.push(strangerCompany);
  return (perCompany ? numbers : [null]).map((company) => {
    const source = sourceOf[side];
    const name = company === null ? source : `${source}/${company}`;
    const stream = madeUpList((request, signal) => get(request, { name, company }, signal), {
      name,
      ...(company !== null && { company: String(company) }),
      ...{ source, pagination: pagingOf(traits[side]), pageLimit: traits[side].pageRows },
      id: idPath(side, traits),
      time: [side === 'old' ? 'eventTime' : 'event_time'],
      fingerprint: `made up ${company}`,
    });
    return { stream, company };
  });
}

/** The sources as they are paired. */
export function pairedSources(
  streams: Readonly<Record<Side, readonly SideStream[]>>,
  traits: Traits,
): readonly PairedSource[] {
  return (['old', 'new'] as const).map((side) => ({
    name: sourceOf[side],
    streams: streams[side].map(({ stream }) => stream),
    ...(side === 'new' && { succeeds: successionOf(traits) }),
  }));
}

function successionOf({ fieldMoved, differs, overlapMs, patienceMs }: Traits): Succession {
  return {
    source: sourceOf.old,
    fields: fieldMoved ? { actorId: 'actor.uid' } : {},
    ignore: differs === 'ignored' ? ['requestSource'] : [],
    ...{ overlapMs, patienceMs },
  };
}

function idPath(side: Side, { ids, idMoved }: Traits): string | null {
  if (ids === 'none') return null;
  return side === 'old' && idMoved ? 'eventId' : 'id';
}

function pagingOf({ paging }: SideTraits): Pagination {
  return {
    ...{ ...pagination, style: paging },
    ...(paging === 'page' && { page_param: 'page', first_page: 1 }),
  };
}

type Get = Upstream['get'];
