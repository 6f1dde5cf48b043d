// What `check` says of upstreams that end and of sources that move, from the config and the state
// beside it. What must stay true: a state that cannot be read is no flaw of the config.

import type { Config } from '../../config/config.ts';
import type { WholePlan } from '../../config/plan.ts';
import { inShards } from '../../config/shards.ts';
import { commandOf } from '../../terminal/command-text.ts';
import { painted } from '../../terminal/table.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { concernedUpstreams, movedSources } from '../../watch/moved-sources.ts';
import { emptyState, readState, type State } from '../../watch/state.ts';
import { announcedOf } from '../../watch/stored.ts';
import { endFacts, endMatters, endText, originText } from '../../watch/upstream-ends.ts';
import { whereItRuns } from './at-work.ts';

/** A part of the config, with its state. */
interface Part {
  readonly config: Config;
  readonly stored: State;
}

/** What the state beside a config knows of moves. */
export class MovesKnown {
  readonly #config: Config;
  readonly #plan: WholePlan;
  readonly #parts: readonly Part[];
  /** Sources whose successor delivers and was read: a refusal of their API is no fault. */
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

  /** When each upstream ends, and what to do about the dates that are near. */
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
