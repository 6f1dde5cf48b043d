// Detects a stream whose texts are not UTF-8, which RFC 8259 requires of JSON. Its records are stored unchanged, and
// each of its events has a marker (normalise/envelope.ts); this file reports the condition, once per stream. Invariant:
// the stored state has the report, in one transaction with the condition, so no restart reports it again.

import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { Clock, FetchSpool, Log, Stream } from '../contracts/index.ts';
import { Identifier } from '../list/index.ts';
import { conditionRecord, type OnFinding, ownPage, pageContext } from '../poll/index.ts';

/** Dependencies of the check. */
export interface EncodingDeps {
  readonly spool: Pick<FetchSpool, 'append' | 'recall'>;
  readonly tools: { readonly clock: Clock; readonly log: Log };
  readonly found?: OnFinding | undefined;
}

/** The fact stored beside a stream's checkpoint, under `encodingKey`. */
const reported = z.object({ version: z.literal(1), reported: z.literal(true) });

/** The name under which the fact is stored; no stream has this name. */
function encodingKey(stream: string): string {
  return `${stream}#encoding`;
}

/** Watches the bodies of one stream. */
export class EncodingWatch {
  readonly #stream: Stream;
  readonly #deps: EncodingDeps;
  #state: 'valid' | 'due' | 'reported' = 'valid';

  constructor(stream: Stream, deps: EncodingDeps) {
    this.#stream = stream;
    this.#deps = deps;
  }

  /** Checks a body that was read. */
  see(body: Uint8Array): void {
    if (this.#state === 'valid' && !isUtf8(body)) this.#state = 'due';
  }

  /** Stores the condition if it is due; rejects if the spool does. */
  async report(): Promise<void> {
    if (this.#state !== 'due') return;
    const { spool, tools, found } = this.#deps;
    const { source, name, company = '' } = this.#stream;
    const key = encodingKey(name);
    if (reported.safeParse((await spool.recall(key)).checkpoint).success) {
      this.#state = 'reported';
      return;
    }
    const now = tools.clock.now();
    const condition = 'source.invalid_utf8' as const;
    const message = `records of ${name} have bytes that are not UTF-8; such events have the tag invalid_utf8, and raw_data keeps the bytes as base64`;
    const record = conditionRecord(this.#stream, { condition, message }, now);
    const uid = new Identifier({ source, company, stream: name }).ownUid([condition]);
    const context = pageContext(this.#stream, 'condition', now);
    const pages = [ownPage(context, [record], [uid])];
    await spool.append({ stream: key, pages, checkpoint: { version: 1, reported: true } });
    this.#state = 'reported';
    tools.log.warn('records_not_utf8', 'records have bytes that are not UTF-8; reported once', {
      stream: name,
      next: 'Correct the encoding at the source. No event is lost, and raw_data keeps the bytes.',
    });
    found?.(record);
  }
}
