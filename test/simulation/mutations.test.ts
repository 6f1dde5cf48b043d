// The flaws of `npm run simulate -- --mutations` fit the code as it is.

import { expect, test } from 'vitest';
import { mutated } from './mutate.ts';
import { mutations } from './mutations.ts';

test.each(mutations)('the code can be made to have this flaw: $what', async (mutation) => {
  const code = await mutated(mutation);

  expect(code).toContain(mutation.to);
});
