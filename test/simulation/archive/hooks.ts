// Has the archive find tables.ts in place of Parquet, for a run by `node`. Tests say the same to vitest.

import { registerHooks } from 'node:module';

const tables = new URL('./tables.ts', import.meta.url).href;
const parquet = /\/parquet\/(read|erase)\.ts$/;

registerHooks({
  resolve: (specifier, context, next) =>
    parquet.test(specifier) && /\/src\/archive\//.test(context.parentURL ?? '')
      ? { url: tables, shortCircuit: true }
      : next(specifier, context),
});
