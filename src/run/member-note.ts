// What a process that takes part in a state in Kafka notes on its disk for the commands that look
// there: that it runs though it may have no shard, which shards it has, and why it stands by. What
// must stay true: the note counts only while its process lives, which a lock beside it proves; and
// a note that cannot be written stops nothing.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Log } from '../contracts/index.ts';
import { holderOf, type Lock, replacePrivateFile, takeLock } from '../hold/index.ts';
import { shardShare } from '../watch/index.ts';

const noteShape = z.object({
  /** Why it works on nothing; null: it works. */
  standing_by: z.string().nullable(),
  /** Undefined: the state has one shard. */
  shards: shardShare.optional(),
});

/** What is noted. */
export type MemberFacts = Readonly<z.infer<typeof noteShape>>;

/** What a process has noted that lives. */
export interface MemberNote extends MemberFacts {
  /** `process PID on HOST`. */
  readonly holder: string;
}

const directory = 'member';
const name = 'member.json';

/** The note of this process in a directory of the state. */
export class MemberFile {
  readonly #dir: string;
  readonly #log: Log;
  #lock: Lock | null = null;
  #noted = '';

  constructor(dir: string, log: Log) {
    this.#dir = join(dir, directory);
    this.#log = log;
  }

  /** Replaces the note. Another process of this directory keeps its own until it ends. */
  note(facts: MemberFacts): void {
    const text = `${JSON.stringify(facts)}\n`;
    if (text === this.#noted) return;
    try {
      this.#lock ??= takeLock(this.#dir);
      replacePrivateFile(join(this.#dir, name), text);
      this.#noted = text;
    } catch (error) {
      this.#log.debug('member_not_noted', 'cannot write the note about this process', {
        error: String(error),
      });
    }
  }

  close(): void {
    this.#lock?.release();
    this.#lock = null;
  }
}

/** The note of a process that lives, in a directory of the state; null: there is none. */
export function memberIn(dir: string): MemberNote | null {
  const place = join(dir, directory);
  try {
    const holder = holderOf(place);
    if (holder === null) return null;
    const noted = noteShape.safeParse(JSON.parse(readFileSync(join(place, name), 'utf8'))).data;
    return { standing_by: null, ...noted, holder };
  } catch {
    return null;
  }
}
