// Locations by their names.

import { expect, test } from 'vitest';
import { openStore } from '../../src/objects/open.ts';

test.each([
  ['s3://some-bucket', 's3://some-bucket/'],
  ['s3://some-bucket/', 's3://some-bucket/'],
  ['s3://some-bucket/a//b/', 's3://some-bucket/a/b/'],
  ['/some/where', '/some/where'],
])('%s is opened', async (location, place) => {
  const store = await openStore(location, { region: 'eu-west-1' });
  expect(store.location).toBe(place);
  store.close();
});

test.each(['s3://', 's3://Some-Bucket/x', 's3:///x', 'gs://some-bucket', 'https://x.example/y'])(
  '%s is refused',
  async (location) => {
    await expect(openStore(location)).rejects.toMatchObject({ code: 'config_invalid' });
  },
);
