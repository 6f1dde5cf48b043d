// The lines of `check` about upstreams that end and sources that move, from the config and the state. Invariant: a
// state that cannot be read is no fault of the config.

import { type Config, inShards } from '../../config/index.ts';
import type { ExportError } from '../../contracts/index.ts';
import { deadPredecessor, earliestOf, givenUpNext } from '../../fetch/index.ts';
import type { WholePlan } from '../../run/index.ts';

import { commandOf, painted } from '../../terminal/index.ts';
import { cleanText } from '../../tools/index.ts';
import {
  announcedOf,
  concernedUpstreams,
  emptyState,
  endFacts,
  endMatters,
  endText,
  movedSources,
  originText,
  readState,
  type State,
} from '../../watch/index.ts';
import { whereItRuns } from './at-work.ts';

/** A part of the config, with its state. */
interface Part {
  readonly config: Config;
  readonly stored: State;
}

/** The moves that the state has for a config. */
export class MovesKnown {
  readonly #config: Config;
  readonly #plan: WholePlan;
  readonly #parts: readonly Part[];
  /** Sources whose successor delivers and was read: a rejection by their API is no fault. */
  readonly moved: ReadonlySet<string>;

  constructor(config: Config, plan: WholePlan) {
    this.#config = config;
    this.#plan = plan;
    this.#parts = inShards(config).map((part) => {
      const at = whereItRuns(part).config;
      return { config: at, stored: storedOf(at) };
    });
    this.moved = new Set(this.#parts.flatMap(({ stored }) => [...movedSources(stored, plan)]));
    for (const { stored } of this.#parts) {
      for (const client of plan.upstreams.values()) {
        client.announced.resume(announcedOf(stored, client));
      }
    }
  }

  /** True where all sources of an upstream have moved. */
  hasMoved(upstream: string): boolean {
    const own = this.#plan.sources.filter((source) => source.upstream === upstream);
    return own.length > 0 && own.every(({ name }) => this.moved.has(name));
  }

  /**
   * Why successors would not start, where their predecessors cannot be read; `failures`: by stream,
   * of this check.
   */
  *deadStarts(failures: ReadonlyMap<string, string>): Generator<readonly [string, ExportError]> {
    for (const { name: successor, succeeds, list, streams } of this.#plan.sources) {
      const old = this.#plan.sources.find(({ name }) => name === succeeds?.source);
      if (succeeds === undefined || old === undefined || list?.start !== 'beginning') continue;
      const names = old.streams.map(({ name }) => name);
      const cause = names.map((name) => failures.get(name)).find((one) => one !== undefined);
      const part = this.#parts.find(({ config }) => Object.hasOwn(config.sources, successor));
      if (cause === undefined || part === undefined) continue;
      const { streams: stored, pairs } = part.stored;
      const facts = (name: string) => stored.get(name)?.checkpoint ?? null;
      if (streams.every(({ name }) => facts(name) !== null)) continue;
      const begunAt = pairs.find((pair) => pair.successor === successor)?.begunAt ?? Date.now();
      const from = begunAt - succeeds.overlapMs;
      const reached = names.map((name) => stored.get(name)?.reached.at(-1)?.at ?? 0);
      if (Math.min(...reached) >= from) continue;
      const newest = earliestOf(names.map((name) => facts(name)?.watermark ?? null));
      const known = { successor, predecessor: old.name, cause, from, newest };
      yield [`source ${successor}: start`, deadPredecessor(known)];
    }
  }

  /** Pairs that the config abandons before their cutover. */
  *givenUp(): Generator<string> {
    for (const { stored } of this.#parts) {
      for (const { successor, predecessor, phase } of stored.pairs) {
        const source = this.#config.sources[successor];
        if (phase === 'cut_over' || source?.succeeds?.source === predecessor) continue;
        const what = source === undefined ? 'the source' : 'succeeds';
        yield `sources.${successor}: ${what} was removed before the cutover (phase ${phase}), so records can be repeated. ${givenUpNext(successor, predecessor)}`;
      }
    }
  }

  /** Settings that name the ending source of a pair, and not its successor. */
  *namedOld(): Generator<string> {
    const { sources, drift } = this.#plan;
    const succeeded = new Set(sources.flatMap(({ succeeds }) => succeeds?.source ?? []));
    for (const { name: successor, succeeds, streams } of sources) {
      const old = succeeds?.source;
      if (old === undefined) continue;
      for (const { name, parents } of sources) {
        if (parents === undefined || !('of' in parents.each) || parents.each.of !== old) continue;
        if (succeeded.has(name)) continue;
        yield `sources.${name}.each.of names ${old}, whose API ends: add a successor of ${name} with each: { of: ${successor} }`;
      }
      for (const key of ['changes', 'trail'] as const) {
        const names = drift?.[key] ?? [];
        if (!names.includes(old) || names.includes(successor)) continue;
        yield `watch.drift.${key} names ${old} and not ${successor}: add ${successor}, which delivers after the cutover`;
      }
      for (const [at, { where }] of this.#plan.routes.entries()) {
        if (where === undefined || !new RegExp(`["']${old}["']`).test(where)) continue;
        yield `routes[${at}].where names ${old}: events of ${successor} have ${successor} as source; change the filter before the cutover`;
      }
      const known = new Set(
        sources.find(({ name }) => name === old)?.streams.map(({ company }) => company),
      );
      const unknown = streams.flatMap(({ company }) =>
        company === undefined || known.has(undefined) || known.has(company) ? [] : [company],
      );
      if (unknown.length === 0) continue;
      yield `sources.${successor}: ${old} does not read ${unknown.length === 1 ? 'company' : 'companies'} ${unknown.slice(0, 5).join(', ')}: these records are in ${successor} only, and each waits for patience before the cutover`;
    }
  }

  /** When each upstream ends, and the next step for dates that are near. */
  endLines(): readonly string[] {
    const now = Date.now();
    const concerned = concernedUpstreams(this.#plan, (source) => this.moved.has(source));
    const ends = Array.from(this.#plan.upstreams.values(), (client) => {
      const moved = !concerned.has(client.name);
      return endFacts(client.name, client.state().end, { now, moved });
    });
    return [
      ...ends.map(
        (one) => `      upstream ${one.name} ${endText(one) ?? 'has no end'}: ${originText(one)}`,
      ),
      ...endMatters(ends, commandOf(this.#config.file)).map(
        ({ who, what, message, next }) =>
          `${painted('note', 'warn')}  ${cleanText(`${who} ${what}. ${message} ${next}`, 800)}`,
      ),
    ];
  }
}

function storedOf({ state }: Config): State {
  try {
    return readState(state.dir);
  } catch {
    return emptyState;
  }
}
