// The contract of every object store, on any back end. Each test has a store of its own, made by the caller.

import { expect, test } from 'vitest';
import type { ObjectStore } from '../../src/objects/store.ts';
import { collected, textOf } from './reading.ts';

const bytes = (text: string) => [Buffer.from(text, 'utf8')];

/** Declares the tests; `open` gives a store that is empty, and again another view of the same with `again`. */
export function keepsObjects(
  open: () => Promise<{ store: ObjectStore; again: ObjectStore }>,
): void {
  test('create writes once, and leaves an existing object alone', async () => {
    const { store, again } = await open();

    expect(await store.create('a/b', [Buffer.from('on'), Buffer.from('e')])).toBe('created');
    expect(await again.create('a/b', bytes('two'))).toBe('exists');

    expect(await textOf(store, 'a/b')).toBe('one');
  });

  test('of many that create the same name at once, one does', async () => {
    const { store, again } = await open();
    const writers = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? store : again));

    const answers = await Promise.all(writers.map((one, i) => one.create('x', bytes(`${i}`))));

    expect(answers.filter((answer) => answer === 'created')).toHaveLength(1);
    expect(await textOf(store, 'x')).toBe(`${answers.indexOf('created')}`);
  });

  test('replace needs the tag of the existing object', async () => {
    const { store, again } = await open();
    const first = await store.replace('x', bytes('one'), null);
    const second = await again.replace('x', bytes('two'), first);

    expect(await store.replace('x', bytes('three'), null)).toBeNull();
    expect(await store.replace('x', bytes('three'), first)).toBeNull();
    expect(await store.replace('y', bytes('three'), first)).toBeNull();

    expect(await textOf(store, 'x')).toBe('two');
    expect((await store.read('x'))?.tag).toBe(second);
    expect((await store.facts('x'))?.tag).toBe(second);
  });

  test('of many that replace the same version at once, one does', async () => {
    const { store, again } = await open();
    let tag = await store.replace('x', bytes('begin'), null);
    for (let round = 0; round < 5; round++) {
      const writers = Array.from({ length: 6 }, (_, i) => (i % 2 === 0 ? store : again));

      const tags = await Promise.all(
        writers.map((one, i) => one.replace('x', bytes(`${round} ${i}`), tag)),
      );

      const winners = tags.flatMap((found, i) => (found === null ? [] : [i]));
      expect(winners).toHaveLength(1);
      expect(await textOf(again, 'x')).toBe(`${round} ${winners[0]}`);
      tag = tags[winners[0] ?? 0] ?? null;
    }
  });

  test('put overwrites an existing object', async () => {
    const { store, again } = await open();
    await store.put('x', bytes('one'));
    await again.put('x', bytes('two'));

    expect(await textOf(store, 'x')).toBe('two');
  });

  test('read returns a range, or the part of the range that exists', async () => {
    const { store } = await open();
    await store.create('x', bytes('0123456789'));
    await store.create('empty', []);
    const text = async (from: number, length: number) =>
      Buffer.from((await store.read('x', { from, length }))?.body ?? []).toString();

    expect(await text(2, 3)).toBe('234');
    expect(await text(8, 10)).toBe('89');
    expect(await text(10, 5)).toBe('');
    expect(await text(3, 0)).toBe('');
    expect((await store.read('empty'))?.body).toHaveLength(0);
    expect((await store.read('empty', { from: 0, length: 5 }))?.body).toHaveLength(0);
    expect(await store.facts('x')).toMatchObject({ bytes: 10 });
  });

  test('a missing object reads as null, and can be removed', async () => {
    const { store } = await open();
    await store.create('x/y', bytes('one'));
    await store.remove('x/y');
    await store.remove('x/y');

    expect(await store.read('x/y')).toBeNull();
    expect(await store.read('x/y', { from: 1, length: 1 })).toBeNull();
    expect(await store.facts('x/y')).toBeNull();
    expect(await store.facts('z')).toBeNull();
    expect(await store.create('x/y', bytes('two'))).toBe('created');
  });

  test('list goes in the order of names, by prefix and behind a name', async () => {
    const { store } = await open();
    const names = ['a-b', 'a/b', 'a/b.p/1', 'a0', 'b/a/c', 'b/a.b', 'b/c'];
    for (const name of names.toReversed()) await store.create(name, bytes(name));
    const inOrder = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

    expect(await collected(store.list(''))).toEqual(
      inOrder.map((name) => ({ name, bytes: name.length })),
    );
    const found = async (prefix: string, after?: string) =>
      (await collected(store.list(prefix, after))).map(({ name }) => name);
    expect(await found('a/')).toEqual(inOrder.filter((name) => name.startsWith('a/')));
    expect(await found('b/a')).toEqual(['b/a.b', 'b/a/c']);
    expect(await found('none')).toEqual([]);
    for (const [at, name] of inOrder.entries()) {
      expect(await found('', name)).toEqual(inOrder.slice(at + 1));
    }
    expect(await found('', 'b/a')).toEqual(['b/a.b', 'b/a/c', 'b/c']);
    expect(await found('b/', 'a/z')).toEqual(['b/a.b', 'b/a/c', 'b/c']);
  });

  test.each(['../x', 'a/../b', '/x', 'a//b', '', 'a/', '.x', 'a/.b', 'a\\b', 'a\nb', 'a\0b'])(
    'no object is named %j',
    async (name) => {
      const { store } = await open();

      await expect(store.create(name, bytes('x'))).rejects.toMatchObject({
        code: 'broken_invariant',
      });
      await expect(store.read(name)).rejects.toMatchObject({ code: 'broken_invariant' });
    },
  );
}
