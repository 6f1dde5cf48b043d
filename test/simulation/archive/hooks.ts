// Replaces the reader and the eraser of Parquet by tables.ts, for a run by `node`. Tests do the same with vi.mock.

import { registerHooks } from 'node:module';

const tables = new URL('./tables.ts', import.meta.url).href;
const replaced = /^\.\/(read|erase)\.ts$/;

registerHooks({
  resolve: (specifier, context, next) =>
    replaced.test(specifier) && /\/src\/parquet\/index\.ts$/.test(context.parentURL ?? '')
      ? { url: tables, shortCircuit: true }
      : next(specifier, context),
});
