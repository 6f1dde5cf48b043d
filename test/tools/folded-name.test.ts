// Names of the earlier API as its successor writes them.

import { expect, test } from 'vitest';
import { foldedName, foldedPath } from '../../src/tools/folded-name.ts';

test.each([
  ['requestId', 'request_id'],
  ['sourceIP', 'source_ip'],
  ['IPAddress', 'ip_address'],
  ['srcIPv4Address', 'src_ipv4_address'],
  ['request_id', 'request_id'],
  ['id', 'id'],
  ['URL', 'url'],
  ['page2Size', 'page2_size'],
  ['x-request-id', 'x_request_id'],
  ['größeÄnderung', 'größe_änderung'],
  ['', ''],
])('%s is %s', (name, folded) => {
  expect(foldedName(name)).toBe(folded);
  expect(foldedName(folded)).toBe(folded);
});

test('a path is folded step by step', () => {
  expect(foldedPath('targetResource.resourceId')).toBe('target_resource.resource_id');
});
