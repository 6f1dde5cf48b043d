// The parameters that a strategy of poller.ts gives to a walk (follow.ts), and the walk's result.

import type { Failure, ListEndpoint } from '../contracts/index.ts';
import type { CheckpointChange } from './checkpoint.ts';
import type { Identified } from './identity.ts';
import type { PageRole } from './idless.ts';
import type { ListPosition, Resume } from './page.ts';
import { type EndVerdicts, nonePassed, type Passed } from './paging-doubt.ts';
import type { ListDeps, ListReader } from './reader.ts';
import type { IdlessTally, Stage, Taken, WalkSeen } from './stage.ts';
import type { EmptyRun } from './walk-end.ts';

/** The page source and sink of a walk: the reader of a list, or of a collection. */
export type WalkReader = Pick<
  ListReader,
  | 'checkpoint'
  | 'limit'
  | 'ask'
  | 'identify'
  | 'take'
  | 'differs'
  | 'stage'
  | 'isWhole'
  | 'isLate'
  | 'flush'
> & {
  readonly deps: Pick<ListDeps, 'start' | 'clock' | 'log'> & { readonly stream: ListEndpoint };
};

/** One strategy's walk. */
export interface Walk {
  readonly from: Resume;
  /** Role of the first page; the pages after a `resume` page are `onward`. */
  readonly reading: PageRole;
  /** False: the walk's records are not anchored until it has reached known records. */
  readonly anchored: boolean;
  /** The walk leads to the end of the list, so its cursors are recorded for stepping back. */
  readonly trail: boolean;
  /** Records up to this event time count as known: all of them were read and may be forgotten. */
  readonly horizon?: number | null;
  /** The walk begins where the list ended at the last request. */
  readonly isPoll?: boolean;
  /** Rows passed before its first page; default: unknown. */
  readonly passed?: Passed;
  /** Counts of records without ids that this walk continues. */
  readonly tally?: IdlessTally;
  /** Empty pages directly before its first page. */
  readonly empties?: EmptyRun;
  /** Epoch milliseconds after which the walk pauses, after at least one page. */
  readonly until?: number;
  /** Checks a page before it is accepted; a failure if it cannot be the requested page. */
  check?(identified: Identified, seen: WalkSeen): Failure | null;
  /** Ends the walk before the end of the list. */
  stopAt?(taken: Taken): boolean;
  /** The checkpoint step of a page; the walk continues at `next` or has ended at `position`. */
  step(stage: Stage): CheckpointChange;
}

/** The result of a walk. */
export interface Walked {
  readonly fresh: number;
  /** The rest of the list is still unread: many empty pages were seen, or the time was over. */
  readonly paused: 'empty' | 'time' | null;
  /** The position of the rest; null: everything was read. */
  readonly next: ListPosition | null;
  /** It ended at an empty page with a next cursor: the usual end of this server's lists, or a gap. */
  readonly leadsOn: boolean;
  /** Verdicts on the paging from its end. */
  readonly verdicts: EndVerdicts;
  /** Rows moved and the walk restarted: positions of new records are no evidence then. */
  readonly restarted: boolean;
}

/**
 * The walk from the start of the list, without pauses, and without the check of the position that it has left. Until it
 * has finished, the checkpoint stays: after a crash, everything from there on counts as unread.
 */
export function restartedWalk(
  { tally: _, until: __, check: ___, ...walk }: Walk,
  first: ListPosition,
): Walk {
  const from = { resume: first, overlap: null };
  const step = (stage: Stage) => (stage.next === null ? walk.step(stage) : {});
  const again = { ...walk, from, reading: 'known', passed: nonePassed } as const;
  return walk.anchored ? { ...again, step } : again;
}
