// The required result for an archive, by its verdict: if `verify` finds nothing, each existing body is upstream's, each
// missing body was removed by the rules, no archived page is missing, and a checkpoint kept outside detects any cut or
// rewrite.

import type { Verifier } from '../../../src/archive/note.ts';
import { ArchiveReader } from '../../../src/archive/reader.ts';
import type { Report } from '../../../src/archive/verify/findings.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Tell } from '../verdict.ts';
import type { HostileStore } from './hostile-store.ts';
import type { Head, Process } from './process.ts';
import { statusOf } from './stored-bodies.ts';
import { uidsIn } from './tables.ts';
import type { Branch, Rules } from './truth.ts';

/** An archive at its end. */
interface Ended {
  readonly store: HostileStore;
  readonly process: Process;
  readonly rules: Rules;
  readonly shard: number | undefined;
  readonly trusted: readonly Verifier[];
  readonly wasAttacked: boolean;
  readonly tell: Tell;
}

/** Has `verify` judge it, and holds the verdict against what is true. */
export async function judge(ended: Ended): Promise<void> {
  const { process, rules, wasAttacked, tell } = ended;
  const { finding } = rules;
  const report = await verified(ended);
  if (report === null) {
    if (!wasAttacked && process.heads.length > 0)
      finding('verify gives no verdict, and nobody has changed anything');
    return;
  }
  const [first] = report.breaks;
  if (first !== undefined) {
    tell(`verify: ${first.what} (${first.object})`);
    // Before its first checkpoint an archive proves nothing.
    if (!wasAttacked && process.heads.length > 0)
      finding(`verify: ${first.what} (${first.object}), and nobody has changed anything`);
    return;
  }
  const root = Buffer.from(report.root, 'base64').toString('hex');
  const head = process.heads.find((one) => one.size === report.size && one.root === root);
  if (head === undefined) {
    finding('verify accepts a checkpoint that was never signed');
    return;
  }
  tell(`verify: whole, ${report.size} entries`);
  const branch = head.branch.upTo(head.size);
  checkContents(ended, branch, report);
  await checkSince(ended, head);
}

async function verified(
  { store, shard, trusted, rules }: Ended,
  since?: Uint8Array,
): Promise<Report | null> {
  try {
    const reader = new ArchiveReader(store.reader());
    return await verifyArchive(reader, { trusted, shard, ...(since && { since }) });
  } catch (error) {
    if (!(error instanceof ExportError)) rules.finding(`verify crashes: ${(error as Error).stack}`);
    return null;
  }
}

/** Bodies and objects of the lake as they are, against what is true of them. */
function checkContents({ store, rules }: Ended, branch: Branch, report: Report): void {
  const { finding } = rules;
  for (const [object, indexes] of branch.segments) {
    const whole = store.body(object);
    if (whole === null) {
      if (!branch.pruned.has(object)) finding(`whole, and ${object} is missing`);
      continue;
    }
    for (const index of indexes) {
      const current = statusOf(branch, index, whole);
      if (current === 'forged') finding(`whole, and the body of entry ${index} is not upstream's`);
      // What was erased and stands there again is reported.
      if (current === 'back' && !report.remarks.some((one) => one.includes(object))) {
        finding(`whole, and what was erased from entry ${index} stands there again`);
      }
    }
  }
  const uidsOf = (object: string) => {
    const [first] = store.honest.get(object) ?? [];
    return first == null ? [] : uidsIn(first);
  };
  for (const one of branch.copiesLeft(uidsOf)) finding(`whole, and ${one} is an erased record`);
  for (const [object, cut] of branch.cutOf) {
    const entry = branch.parsed.find((one) => one.t === 'lake' && one.object === object);
    if (store.body(object) !== null || branch.pruned.has(cut)) continue;
    if ((branch.lakeGone.get(object)?.size ?? 0) < entry.rows)
      finding(`whole, and ${object} is missing`);
  }
}

/** Checkpoints that were kept outside, the newest and one of each history. */
async function checkSince(ended: Ended, head: Head): Promise<void> {
  const { process, rules } = ended;
  const { entries } = head.branch;
  const isBefore = (one: Head) =>
    one.size <= head.size &&
    one.branch.entries.slice(0, one.size).every((entry, i) => entries[i]?.equals(entry));
  const other = process.heads.findLast((one) => !isBefore(one));
  const since = other ?? process.heads.findLast((one) => one.size > 0);
  if (since === undefined) return;
  const report = await verified(ended, since.note);
  const isWhole = report !== null && report.breaks.length === 0;
  if (isWhole && other !== undefined) {
    rules.finding(`whole since a checkpoint of ${since.size} entries, which are not there`);
  }
  if (!isWhole && other === undefined)
    rules.finding('whole, and not whole since its own checkpoint');
}
