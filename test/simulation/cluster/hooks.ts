// Has what is loaded from here on find the modelled Kafka in place of its client's library, memory in
// place of the state database, and modelled machines: for a run by `node`. Tests say the same to vitest.

import { registerHooks } from 'node:module';

const stand: Readonly<Record<string, string>> = {
  '@platformatic/kafka': new URL('./kafka.ts', import.meta.url).href,
  '../../hold/open.ts': new URL('./rebuilding.ts', import.meta.url).href,
  './shard-child.ts': new URL('./machine.ts', import.meta.url).href,
};

registerHooks({
  resolve: (specifier, context, next) => {
    const url = stand[specifier];
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});
