// `sluice healthy`: the exit code for the health check of a container, which has no shell and no other program. It
// requests `/healthz` at `status.listen` of the config. Invariant: a process that runs is not unhealthy because its
// config has no status server, or has become invalid since the start.

import { whyUnhealthy } from '../watch/running-status.ts';
import { readConfigAtWork } from './shared/at-work.ts';
import { configOption, defineCommand } from './shared/command.ts';

/** Ends with 0 if the process answers, else with 1. */
export const healthy = defineCommand({
  name: 'healthy',
  about: 'check that the running process answers, for a health check of a container',
  options: { config: configOption },
  more: `Requests /healthz at status.listen. Exit code 0: it answers, or the config has no status.listen. 1: it does not answer.`,
  async run({ config: file }, deps) {
    const why = await whyUnhealthy(readConfigAtWork(file, deps).config);
    if (why !== null) deps.err(why);
    return why === null ? 0 : 1;
  },
});
