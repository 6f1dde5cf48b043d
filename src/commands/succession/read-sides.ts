// Reads both sides of each proposal: the new upstream's own description, and one record of each list. Invariants:
// nothing is stored, a side that does not answer is a note and no failure, and no upstream is waited for twice.

import { sourceBlock } from '../../config/index.ts';
import { asExportError, type Json, type ListEndpoint, type Stream } from '../../contracts/index.ts';
import type { UpstreamClient, WholePlan } from '../../run/index.ts';
import { askList } from '../shared/ask-upstream.ts';
import { describedPaths, openApiNotes } from '../shared/openapi.ts';
import type { Proposal, Proposals } from './proposal.ts';
import { type ReadBy, suggestionFrom } from './records.ts';
import { typeNamed } from './targets.ts';

const answerWithinMs = 30_000;
const candidatesMax = 3;

/** The same proposals, with the facts that both sides show now. Never throws. */
export async function withBothSides(proposals: Proposals, plan: WholePlan): Promise<Proposals> {
  const { into } = proposals;
  const client = into === null || into.isNew ? undefined : plan.upstreams.get(into.name);
  if (into === null || client === undefined) return proposals;
  const reading = new Reading();
  const described = await describedPaths(client, AbortSignal.timeout(answerWithinMs));
  const sources: Proposal[] = [];
  const streams: Stream[] = [];
  for (const proposal of proposals.sources) {
    const later = laterStreams(proposal, client);
    streams.push(...later);
    const old = plan.sources.find(({ name }) => name === proposal.of)?.streams ?? [];
    sources.push(await withRecords(withCandidates(proposal, described), { old, later, reading }));
  }
  const notes = await openApiNotes(client, streams, AbortSignal.timeout(answerWithinMs));
  const own = notes.filter((note) => !note.includes('endpoints that no source here reads'));
  return { ...proposals, sources, into: { ...into, notes: [...into.notes, ...own] } };
}

/** The streams of a successor whose path is known. */
function laterStreams({ successor }: Proposal, upstream: UpstreamClient): readonly Stream[] {
  if (successor === null || successor.block.path === null) return [];
  // A reference in it is not resolved here.
  if (JSON.stringify(successor.block).includes('${')) return [];
  const definition = typeNamed(String(successor.block.type));
  const parsed = sourceBlock(definition).safeParse(successor.block);
  if (!parsed.success) return [];
  const settings = { ...parsed.data, upstream: upstream.name };
  return definition.streams(settings, { name: successor.name, upstream });
}

/** For an open path: those of the description that end like the path that is read now. */
function withCandidates(proposal: Proposal, described: readonly string[]): Proposal {
  const { successor, path } = proposal;
  if (successor?.block.path !== null) return proposal;
  const last = path
    .split('/')
    .findLast((part) => /^[\w-]+$/.test(part))
    ?.toLowerCase();
  const alike = described.filter(
    (one) =>
      last !== undefined &&
      one.toLowerCase().endsWith(`/${last}`) &&
      !one.replace('{company_id}', '').includes('{'),
  );
  if (alike.length === 0) return proposal;
  const note = `openapi.json of the new API has ${alike.slice(0, candidatesMax).join(', ')}: is that the path?`;
  return { ...proposal, notes: [...proposal.notes, note] };
}

interface Sides {
  readonly old: readonly Stream[];
  readonly later: readonly Stream[];
  readonly reading: Reading;
}

async function withRecords(proposal: Proposal, { old, later, reading }: Sides): Promise<Proposal> {
  const { successor } = proposal;
  const [before, after] = [listsOf(old)[0], listsOf(later)[0]];
  if (successor === null || before === undefined || after === undefined) return proposal;
  const first = await reading.first(before.list);
  // A company without any record proves nothing: the next one may have some.
  let second: Found = { record: null };
  for (const { list } of listsOf(later)) {
    second = await reading.first(list);
    if (!('record' in second) || second.record !== null) break;
  }
  const failed = [
    ...('record' in first ? [] : [`the old list cannot be read: ${first.why}`]),
    ...('record' in second ? [] : [`the new list cannot be read: ${second.why}`]),
  ];
  const shown =
    'record' in second
      ? suggestionFrom(
          { old: 'record' in first ? first.record : null, later: second.record },
          { old: before.by, later: after.by },
        )
      : { block: {}, notes: [] };
  return {
    ...proposal,
    successor: { ...successor, block: { ...successor.block, ...shown.block } },
    notes: [...proposal.notes, ...shown.notes, ...failed],
  };
}

interface ReadList {
  readonly list: ListEndpoint;
  readonly by: ReadBy;
}

function listsOf(streams: readonly Stream[]): readonly ReadList[] {
  return streams.flatMap((stream): readonly ReadList[] => {
    if (stream.kind === 'list') {
      return [{ list: stream, by: { id: stream.id, time: stream.time } }];
    }
    if (stream.kind !== 'collection' || stream.single === true) return [];
    const [id = null] = stream.entity.ids;
    return [{ list: stream.list, by: { id, time: [] } }];
  });
}

type Found = { readonly record: Json | null } | { readonly why: string };

/** Requests first records; an upstream that did not respond is not contacted again. */
class Reading {
  readonly #silent = new Map<ListEndpoint['upstream'], string>();

  async first(list: ListEndpoint): Promise<Found> {
    const known = this.#silent.get(list.upstream);
    if (known !== undefined) return { why: known };
    const signal = AbortSignal.timeout(answerWithinMs);
    try {
      return { record: await askList(list, signal) };
    } catch (error) {
      const isLate = signal.aborted;
      const { code, message } = asExportError(error, 'requesting');
      const why = isLate ? `no answer within ${answerWithinMs / 1_000} s` : message;
      const isSilent = isLate || code === 'upstream_unreachable' || code === 'token_refused';
      if (isSilent) this.#silent.set(list.upstream, why);
      return { why };
    }
  }
}
