// `sluice schema`: the config's JSON Schema on stdout, for editors.

import { configSchema } from '../config/json-schema.ts';
import { defineCommand } from './shared/command.ts';

/** Prints the schema. */
export const schema = defineCommand({
  name: 'schema',
  about: 'print the JSON Schema of the config, for editors',
  async run(_, { out }) {
    out(JSON.stringify(configSchema(), null, 2));
    return 0;
  },
});
