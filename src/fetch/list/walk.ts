// What a strategy of poller.ts wants of a walk through the list, and how one has ended (follow.ts).

import type { Failure } from '../../contracts/answer.ts';
import type { ListEndpoint } from '../../contracts/source.ts';
import type { CheckpointChange } from './checkpoint.ts';
import { nonePassed, type Passed } from './end-watch.ts';
import type { Identified } from './identity.ts';
import type { PageRole } from './judge.ts';
import type { ListPosition } from './page.ts';
import type { Resume } from './pager.ts';
import type { EndVerdicts } from './paging-doubt.ts';
import type { ListDeps, ListReader } from './reader.ts';
import type { IdlessTally, Stage, Taken, WalkSeen } from './stage.ts';
import type { EmptyRun } from './tail.ts';

/** What a walk asks for pages, and gives them to: the reader of a list, or of a collection. */
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
  /** What the first page is; the pages after a `resume` page are `onward`. */
  readonly reading: PageRole;
  /** False while what the walk finds is not anchored until it has joined up with what was known. */
  readonly anchored: boolean;
  /** It aims at the list's end, so that its cursors are places to step back to. */
  readonly trail: boolean;
  /** Records up to this event time count as known: all was read, and they may be forgotten. */
  readonly horizon?: number | null;
  /** It asks where the list ended when it was asked before. */
  readonly isPoll?: boolean;
  /** What was passed before its first page; left out: not known. */
  readonly passed?: Passed;
  /** Counting of records without ids that this walk goes on with. */
  readonly tally?: IdlessTally;
  /** Empty pages met right before its first one. */
  readonly empties?: EmptyRun;
  /** Epoch milliseconds after which it pauses, with a page read at least. */
  readonly until?: number;
  /** Looks at a page before it is taken: a failure where it cannot be what was asked for. */
  check?(identified: Identified, seen: WalkSeen): Failure | null;
  /** Ends the walk before the end of the list. */
  stopAt?(taken: Taken): boolean;
  /** The checkpoint's step with a page; the walk goes on at `next` or has ended at `place`. */
  step(stage: Stage): CheckpointChange;
}

/** How a walk ended. */
export interface Walked {
  readonly fresh: number;
  /** The rest of the list is still to be read: it met many empty pages, or its time was over. */
  readonly paused: 'empty' | 'time' | null;
  /** Where that begins; null where all was read. */
  readonly next: ListPosition | null;
  /** It ended at an empty page that leads on: how lists of this server end, or a gap. */
  readonly leadsOn: boolean;
  /** What its end says of the paging. */
  readonly verdicts: EndVerdicts;
  /** Rows moved, so that it began anew at the start: what was new says nothing of where. */
  readonly restarted: boolean;
}

/**
 * The walk from the list's start and in one go. Until it is through, the checkpoint stays where it
 * was: after a crash all from there on counts as unread.
 */
export function anew({ tally: _, until: __, ...walk }: Walk, first: ListPosition): Walk {
  const from = { resume: first, overlap: null };
  const step = (stage: Stage) => (stage.next === null ? walk.step(stage) : {});
  const again = { ...walk, from, reading: 'known', passed: nonePassed } as const;
  return walk.anchored ? { ...again, step } : again;
}
