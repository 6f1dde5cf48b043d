// Replaces three modules for a run by `node`: the client library of Kafka, the state database, and the start of
// processes. Tests configure the same in vitest.

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
