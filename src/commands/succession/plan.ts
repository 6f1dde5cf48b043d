// `sluice succession plan`: proposes a successor for each source of an upstream that ends. Standard
// output is the whole config with the successors added, so that `check` reads it once the open
// values are filled in. What must stay true: nothing is changed, here or upstream, and no secret is
// printed.

import { configOption, defineCommand } from '../shared/command.ts';
import { readConfigToLook } from '../shared/looking.ts';
import { proposalFor } from './proposal.ts';
import { proposalText } from './proposal-text.ts';

/** Prints the proposal as YAML. */
export const plan = defineCommand({
  name: 'plan',
  about: 'propose successors of all sources of an upstream that ends, as YAML',
  options: { config: configOption },
  async run({ config: file }, { env, out }) {
    const { config } = readConfigToLook(file, env);
    for (const line of proposalText(config, proposalFor(config))) out(line);
    return 0;
  },
});
