// The setup of `elasticsearch` never installs a template that other indices of the cluster would get.

import { expect, test } from 'vitest';
import { setUp } from '../../../connectors/sinks/elasticsearch/setup.ts';
import { makeFormat } from '../../formats/make-format.ts';

test.each(['{company}', '{company}-{date}', '{source}.{company}'])(
  'the index %s has no template',
  async (index) => {
    const settings = { index, url: 'http://127.0.0.1:9' } as never;

    const made = setUp(settings, makeFormat('ecs'), {} as never);

    await expect(made).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('every index of the cluster'),
    });
  },
);
