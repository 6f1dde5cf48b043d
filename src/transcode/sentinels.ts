// Values that stand for others while a line is learned: each is like no other in its line, passes
// where the value that it stands for passed, and is found again in what the ordinary path writes.

import { parseTime } from '../normalise/time.ts';
import type { Leaf } from './guards.ts';

/** A stand-in of a value: how the record has it, and what it is found by in a line. */
export interface Sentinel {
  readonly text: string;
  /** Epoch milliseconds where it is a time. */
  readonly time: number;
}

/** Two sets that have nothing in common, so that what is the same with both is no accident. */
export type SentinelSet = 0 | 1;

/** The stand-in of a shape's value with this index, whose guard gave this answer. */
export function sentinelOf(
  { ask, isText }: Pick<Leaf, 'ask' | 'isText'>,
  answer: number,
  index: number,
  set: SentinelSet,
): Sentinel {
  const text = isText ? textLike(ask, answer, index, set) : numberLike(ask, index, set);
  return { text, time: ask === 'time' ? parseTime(text) : Number.NaN };
}

function numberLike(ask: Leaf['ask'], index: number, set: SentinelSet): string {
  const base = set === 0 ? 41_003 : 53_017;
  return ask === 'port'
    ? String(base + index * 37)
    : `${set === 0 ? 73 : 6481}${base + index * 37}`;
}

const timeBases = [1_911_111_111_111, 2_022_222_222_222] as const;

function textLike(ask: Leaf['ask'], answer: number, index: number, set: SentinelSet): string {
  const number = String(index).padStart(3, '0');
  const name = set === 0 ? `Zq${number}xK` : `wVj${number}yGh`;
  const host = set === 0 ? 'x.example' : 'yy.example';
  switch (ask) {
    case 'email':
      return `${name}@${host}`;
    case 'email or not':
      return answer === 1 ? `${name}@${host}` : name;
    case 'path or not':
      return answer === 1 ? `/${name}` : name;
    case 'ipv4':
      return set === 0 ? `198.18.${index % 200}.117` : `198.19.13${index % 10}.${index % 200}`;
    case 'time':
      // Microseconds: formats write milliseconds, and what is copied is told from what is written.
      return new Date(timeBases[set] + index * 86_543_210).toISOString().replace('Z', '407Z');
    default:
      return name;
  }
}

/** What stands for when the page was read. */
export function fetchedAtOf(set: SentinelSet): number {
  return set === 0 ? 1_855_555_555_555 : 2_044_444_444_444;
}

/** What stands for the event's uid: 32 bytes. */
export function uidOf(set: SentinelSet): Buffer {
  return Buffer.alloc(32, set === 0 ? 0xab : 0x5c);
}
