// The keys of paging: what does not go together is refused, and what older versions wrote is the same list still.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  fingerprintParts,
  paginationOf,
  requestAdvice,
  requestFields,
  requestFlaw,
  wholeRequestFields,
} from '../../../connectors/shared/pagination.ts';

const list = z.strictObject({
  ...requestFields('cursor'),
  start: z.unknown(),
  params: z.unknown(),
});

const settingsOf = (settings: Record<string, unknown>) =>
  list.parse({ start: 'beginning', params: {}, ...settings }) as never; // as a source has them

describe('check notes', () => {
  test.each<[Record<string, unknown>, string]>([
    [
      { style: 'cursor', offset_param: 'skip' },
      'pagination.offset_param has no effect with style: cursor: remove the key, or set style: offset',
    ],
    [
      { style: 'offset', cursor_param: 'after' },
      'pagination.cursor_param has no effect with style: offset: remove the key, or set style: cursor',
    ],
    [
      { style: 'offset', next: 'meta.next' },
      'pagination.next has no effect with style: offset: remove the key, or set style: cursor',
    ],
    [
      { style: 'page', limit_param: 'per_page' },
      'pagination.limit_param has no effect with style: page: remove the key, or use size_param',
    ],
    [
      { style: 'window', within: 'offset', cursor_param: 'after' },
      'pagination.cursor_param has no effect with within: offset: remove the key, or set within: cursor',
    ],
  ])('a key without effect: %j', (pagination, note) => {
    expect(requestAdvice(settingsOf({ pagination }))).toEqual([note]);
  });

  test.each<Record<string, unknown>>([
    {},
    { style: 'cursor', cursor_param: 'after', limit_param: 'n', next: 'meta.next' },
    { style: 'offset', offset_param: 'skip', limit_param: 'n' },
    { style: 'next_url', next: 'paging.next', limit_param: 'n' },
    { style: 'window', cursor_param: 'after', next: 'meta.next' },
    // As the contract lists them, with the defaults.
    { style: 'cursor', cursor_param: 'cursor', offset_param: 'offset', next: 'next_cursor' },
  ])('nothing about %j', (pagination) => {
    expect(requestAdvice(settingsOf({ pagination }))).toEqual([]);
  });

  test('nothing about a list whose first response shows its style', () => {
    const whole = z.strictObject(wholeRequestFields());
    const pagination = { cursor_param: 'after', offset_param: 'skip' };

    expect(requestAdvice(whole.parse({ pagination }) as never)).toEqual([]); // as a source has it
  });
});

describe('check refuses', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['a window without a begin', { pagination: { style: 'window' } }, 'needs start'],
    ['a first page by cursor', { pagination: { first_page: 0 } }, 'pagination.first_page'],
    [
      'a page parameter by offset',
      { pagination: { style: 'offset', page_param: 'p' } },
      'page_param',
    ],
    ['a step by page', { pagination: { style: 'page', step: '1h' } }, 'pagination.step'],
    [
      'a size by windows of cursors',
      { start: 'now', pagination: { style: 'window', size_param: 's' } },
      'size_param',
    ],
    ['a body without POST', { body: { a: 1 } }, 'body needs method: POST'],
    ['a POST to addresses', { method: 'POST', pagination: { style: 'link' } }, 'method: POST'],
    ['lines with cursors', { response: 'ndjson' }, 'response: ndjson'],
    [
      'lines with addresses in them',
      { response: 'ndjson', pagination: { style: 'next_url' } },
      'ndjson',
    ],
    [
      'lines with a flag',
      { response: 'ndjson', pagination: { style: 'offset', more: 'm' } },
      'ndjson',
    ],
    [
      'a parameter that paging sets',
      { params: { page: '1' }, pagination: { style: 'page' } },
      'params holds page',
    ],
    [
      'a bound that paging sets',
      { start: 'now', params: { from: '1' }, pagination: { style: 'window' } },
      'params holds from',
    ],
    ['a member that paging sets', { method: 'POST', body: { cursor: 'a' } }, 'body holds cursor'],
  ])('%s', (_, settings, flaw) => {
    expect(requestFlaw(settingsOf(settings))).toContain(flaw);
  });

  test.each<Record<string, unknown>>([
    {},
    { pagination: { style: 'page', first_page: 0 } },
    { start: 'now', pagination: { style: 'window', within: 'page', size_param: 'n', step: '10m' } },
    { start: 0, pagination: { style: 'window' } },
    { method: 'POST', body: { query: { deep: [1] } }, pagination: { style: 'offset' } },
    { response: 'ndjson', pagination: { style: 'link' } },
    { start: 'now', response: 'ndjson', pagination: { style: 'window', within: 'offset' } },
  ])('not %j', (settings) => {
    expect(requestFlaw(settingsOf(settings))).toBeNull();
  });

  test.each(['0s', '500ms', '1500ms'])('a step of %s', (step) => {
    expect(() => settingsOf({ start: 'now', pagination: { style: 'window', step } })).toThrow(
      'expected whole seconds',
    );
  });

  test('windows of a list that is read whole', () => {
    const whole = z.strictObject(wholeRequestFields());

    expect(() => whole.parse({ pagination: { style: 'window' } })).toThrow();
    expect(paginationOf(whole.parse({})).style).toBe('shown');
  });
});

describe('a fingerprint', () => {
  test.each(['cursor', 'offset', 'none'])(
    'of style %s is unchanged by the newer styles',
    (style) => {
      expect(fingerprintParts(settingsOf({ pagination: { style } }))).toEqual({
        query: [],
        paging: [style, ['data', 'next_cursor', 'cursor', 'offset']],
      });
    },
  );

  test('differs with all that a page depends on', () => {
    const prints = [
      {},
      { pagination: { more: 'has_more' } },
      { pagination: { style: 'page' } },
      { pagination: { style: 'page', page_param: 'p' } },
      { pagination: { style: 'page', size_param: 's' } },
      { pagination: { style: 'page', first_page: 0 } },
      { pagination: { style: 'window' } },
      { pagination: { style: 'window', step: '10m' } },
      { pagination: { style: 'window', within: 'page' } },
      { pagination: { style: 'window', time_format: 'epoch_s' } },
      { response: 'ndjson', pagination: { style: 'link' } },
      { pagination: { style: 'link' } },
      { method: 'POST' },
      { method: 'POST', body: { query: 'a' } },
    ].map((settings) =>
      JSON.stringify(fingerprintParts(settingsOf({ start: 'now', ...settings }))),
    );

    expect(new Set(prints).size).toBe(prints.length);
  });
});
