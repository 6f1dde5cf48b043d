// Cutover and rollback of a pair, by the process that has the state. Invariants: both sides are read to their tails
// right before; and a side that cannot be read never delivers without an operator's force.

import type { Config } from '../config/index.ts';
import type { Json } from '../contracts/index.ts';
import type { Cutover, OperatorRequest } from '../hold/index.ts';
import type { OwnSpool } from '../hold/open.ts';
import type { Pipeline } from '../pipeline.ts';
import type { BootTools } from './tools.ts';

/** The dependencies. */
interface TurnDeps {
  readonly pipeline: Pick<Pipeline, 'readNow'>;
  readonly spool: Pick<OwnSpool, 'cutOver'>;
  readonly tools: Pick<BootTools, 'log'>;
  readonly made: () => { readonly config: Pick<Config, 'sources'> };
}

/** A side is read to its tail within this time, or counts as unread. */
const readMsMax = 10_000;

/** Carries out a cutover or rollback; the answer is a Cutover as JSON, and is stored with the change if it has a `request`. */
export async function turnPair(
  pair: string,
  { phase, isForced }: Extract<OperatorRequest, { what: 'cut_over' }>,
  { pipeline, spool, tools, made }: TurnDeps,
  request?: number,
): Promise<Json> {
  const old = made().config.sources[pair]?.succeeds?.source;
  const read = [...(old === undefined ? [] : [old]), ...(phase === 'cut_over' ? [pair] : [])];
  const cannot = await Promise.all(read.map((source) => pipeline.readNow(source, readMsMax)));
  const whys = cannot.filter((why) => why !== null);
  const unread = whys.length === 0 ? null : whys.join('; ');
  const turned: Cutover = await spool.cutOver({ pair, phase, isForced, unread, request });
  if (turned.isDone)
    tools.log.info('succession_changed', 'succession phase changed by an operator', {
      source: pair,
      phase,
    });
  return JSON.parse(JSON.stringify(turned)) as Json;
}
