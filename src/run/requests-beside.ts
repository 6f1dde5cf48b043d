// Carries out what operators ask of the process that runs, each second: streams and sinks that wait are asked now, and a
// stream is rewound while nothing of the stream is under way. What must stay true: whatever goes wrong with a
// request, it gets an answer, and the journey goes on.

import type { Config } from '../config/config.ts';
import { asExportError } from '../contracts/errors.ts';
import type { Json } from '../contracts/json.ts';
import type { Request } from '../hold/requests.ts';
import type { OwnSpool } from '../hold/spool.ts';
import type { Pipeline } from '../pipeline.ts';
import { rewindStream } from './checkpoint-moves.ts';
import type { BootTools } from './tools.ts';

/** What requests are carried out with. */
export interface RequestMeans {
  /** The config that runs: it may be another after a reload. */
  readonly config: () => Config;
  readonly pipeline: Pipeline;
  readonly spool: OwnSpool;
  readonly tools: Pick<BootTools, 'clock' | 'log'>;
}

const lookEveryMs = 1_000;

/** Carries requests out until stopped. Never rejects. */
export async function serveRequests(means: RequestMeans, stop: AbortSignal): Promise<void> {
  const { spool, tools } = means;
  while (!stop.aborted) {
    try {
      for (const request of await spool.requests()) {
        const answer = await carriedOut(request, means, stop);
        if (answer !== null) await spool.answer(request.id, answer);
      }
    } catch (error) {
      // A full disk, say: it is looked for again.
      if (!stop.aborted) tools.log.debug('looking for requests', { error: String(error) });
    }
    await tools.clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
}

/** What came of it; null where the process ends first, which leaves it to the next one. */
async function carriedOut(
  { name, wish }: Request,
  { config, pipeline, spool, tools }: RequestMeans,
  stop: AbortSignal,
): Promise<Json> {
  const { log } = tools;
  try {
    if (wish.what === 'retry') {
      log.info('asked to try again now', { name });
      return { asked: pipeline.askNow(name).map((asked) => ({ ...asked })) };
    }
    const rewound = await pipeline.whileStill(name, async () => {
      const done = rewindStream(config(), name, wish);
      await spool.moved(name);
      return done;
    });
    log.info('the stream was rewound by hand', { stream: name });
    return { ...rewound };
  } catch (error) {
    if (stop.aborted) return null;
    const { code, message, next } = asExportError(error, `carrying out ${wish.what} of ${name}`);
    return { error: { code, message, next } };
  }
}
