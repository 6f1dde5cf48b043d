// `sluice retry STREAM|SINK`: has a waiting or halted stream or sink asked now, by the process that
// runs, or by the next one. What the far side has asked to wait is never cut short.

import { z } from 'zod';
import { hasState } from '../hold/database.ts';
import { spanText } from '../tools/time-text.ts';
import { readState } from '../watch/state.ts';
import { askAtWork, askLater, isAtWork } from './shared/asking.ts';
import { readConfigAtWork } from './shared/at-work.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { streamNames } from './shared/looking.ts';
import { unknownText } from './shared/typed.ts';

const answerShape = z.object({
  asked: z.array(z.object({ part: z.enum(['stream', 'sink']), waitsUntil: z.number().nullable() })),
});

/** 0: asked; 1: nobody by that name. */
export const retry = defineCommand({
  name: 'retry',
  about: 'ask a waiting or halted stream or sink now; what it was told to wait is kept',
  arguments: { name: { value: 'stream|sink', about: 'which, as status names it' } },
  options: { config: configOption },
  async run({ name, config: file }, means) {
    const { out, err } = means;
    const { config } = readConfigAtWork(file, means);
    const { dir } = config.state;
    const state = readState(dir);
    const names = new Set([
      ...(await streamNames(config)),
      ...Object.keys(config.sinks),
      ...state.streams.keys(),
      ...state.sinks.keys(),
    ]);
    if (!names.has(name)) {
      err(unknownText('stream or sink', name, names));
      return 1;
    }
    if (!isAtWork(config)) {
      if (hasState(dir)) askLater(config, name, { what: 'retry' });
      out(`${name}: nothing runs with this config; the next start asks it at once`);
      return 0;
    }
    const wish = { what: 'retry' } as const;
    const { asked } = await askAtWork(config, { name, wish, shape: answerShape });
    for (const { part, waitsUntil } of asked) {
      const far = part === 'stream' ? 'upstream' : 'the far side';
      out(
        waitsUntil === null
          ? `${name}: asked now`
          : `${name}: ${far} has asked for its wait; it is asked in ${spanText(Math.max(0, waitsUntil - Date.now()))}`,
      );
    }
    if (asked.length === 0) {
      out(`${name}: not asked by what runs now; the next start asks it at once`);
    }
    return 0;
  },
});
