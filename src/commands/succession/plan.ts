// `sluice succession plan`: proposes a successor for each source of an upstream that ends. Standard output is the whole
// config with the successors added, so that `check` reads it once the open values are filled in. If the new API is
// configured already, its description is requested, and one record from each side. Invariants: nothing is changed, here
// or upstream, and no secret is printed.

import { type Config, upstreamEnd } from '../../config/index.ts';
import { openTools, planFrom } from '../../run/index.ts';
import { logForm, openLog } from '../../watch/log.ts';
import { configOption, defineCommand, logLevelOption } from '../shared/command.ts';
import { knownEnds } from '../shared/known-moves.ts';
import { readConfigToLook } from '../shared/looking.ts';
import { type Proposals, proposalFor } from './proposal.ts';
import { proposalText } from './proposal-text.ts';
import { withBothSides } from './read-sides.ts';

/** Prints the proposal as YAML. */
export const plan = defineCommand({
  name: 'plan',
  about: 'propose successors of all sources of an upstream that ends, as YAML',
  options: { config: configOption, logLevel: logLevelOption },
  async run({ config: file, logLevel = 'error' }, { env, out }) {
    const { config, unread } = readConfigToLook(file, env);
    // A state that cannot be read, such as one in Kafka, leaves the dates of the config.
    const ends = await knownEnds(config).catch(() => null);
    const proposals = proposalFor(
      config,
      (name, settings) => ends?.get(name) ?? upstreamEnd(settings, []),
    );
    const isRead = proposals.into !== null && !proposals.into.isNew && unread.length === 0;
    const whole = isRead ? await compared(config, proposals, logLevel) : proposals;
    for (const line of proposalText(config, whole, isRead ? [] : unread)) out(line);
    return 0;
  },
});

async function compared(
  config: Config,
  proposals: Proposals,
  level: NonNullable<Parameters<typeof openLog>[0]['level']>,
): Promise<Proposals> {
  await using tools = openTools(await openLog({ level, form: logForm(process.stderr) }));
  return await withBothSides(proposals, planFrom(config, tools));
}
