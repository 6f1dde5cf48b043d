// `sluice cluster drain` and `undrain`: takes a process out of service, from any machine, and returns a drained process
// to service. Invariant: a drain holds through restarts of that process until it is lifted.

import { loadConfig } from '../../config/index.ts';
import { operatorOf } from '../../operator/index.ts';
import { configOption, defineCommand } from '../shared/command.ts';

const instance = { value: 'instance', about: 'process name, as shown by sluice cluster' } as const;

/** 0: it has released its shards, or has ended. */
export const drain = defineCommand({
  name: 'drain',
  about: 'drain a process: commit, release its shards and go to standby',
  arguments: { instance },
  options: { config: configOption },
  async run({ instance, config: file }, { env, out, err }) {
    const alone = `no other process is on standby: nothing is read until one starts or ${instance} is undrained`;
    const operator = operatorOf(await loadConfig(file, { env }));
    const { isGone, successor } = await operator.drain(instance, () => err(alone));
    const after = successor === null ? 'no process' : successor;
    out(`${instance} ${isGone ? 'has ended' : 'stands by'}; ${after} works`);
    out(`it is drained, also after a restart, until sluice cluster undrain ${instance}`);
    return 0;
  },
});

/** 0: it may own again. */
export const undrain = defineCommand({
  name: 'undrain',
  about: 'allow a drained process to own shards again',
  arguments: { instance },
  options: { config: configOption },
  async run({ instance, config: file }, { env, out }) {
    await operatorOf(await loadConfig(file, { env })).undrain(instance);
    out(`${instance} may own shards again`);
    return 0;
  },
});
