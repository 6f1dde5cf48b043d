// ECS kind, categories and types of an event's class, which are closed lists
// (https://www.elastic.co/docs/reference/ecs/ecs-category-field-values-reference). An event that
// fits no category has none.

import type { OcsfEvent } from '../src/contracts/index.ts';
import { countOf, deviceVerdict } from './parts.ts';

/** The fields of one class, with types by activity and for all activities. */
interface ClassText {
  readonly category: readonly string[];
  readonly types: Readonly<Record<number, string>>;
  readonly always: readonly string[];
}

const crud = { 1: 'creation', 2: 'access', 3: 'change', 4: 'deletion' } as const;
const of = (
  category: string,
  types: Readonly<Record<number, string>> = {},
  always = '',
): ClassText => ({
  category: category.split(' '),
  types,
  always: always === '' ? [] : always.split(' '),
});

// By class_uid.
const classes: Readonly<Record<number, ClassText>> = {
  2004: of('intrusion_detection', {}, 'info'),
  3001: of(
    'iam',
    {
      1: 'creation',
      2: 'change',
      3: 'change',
      4: 'change',
      5: 'change',
      6: 'deletion',
      7: 'change',
      8: 'change',
      9: 'change',
      10: 'change',
      11: 'change',
      12: 'change',
    },
    'user',
  ),
  3002: of('authentication', { 1: 'start', 2: 'end' }, 'info'),
  3003: of('iam', {}, 'admin'),
  3004: of('configuration', {
    ...crud,
    5: 'change',
    6: 'creation',
    7: 'deletion',
    8: 'change',
    9: 'change',
    10: 'change',
    11: 'change',
    12: 'change',
    13: 'change',
  }),
  3005: of('iam', { 1: 'change', 2: 'change' }, 'user'),
  3006: of(
    'iam',
    { 1: 'change', 2: 'change', 3: 'change', 4: 'change', 5: 'deletion', 6: 'creation' },
    'group',
  ),
  4001: of('network', { 1: 'start', 2: 'end', 5: 'denied' }, 'connection'),
  4002: of('web', {}, 'access'),
  4003: of('network', {}, 'protocol'),
  4014: of('network', { 1: 'start', 2: 'end' }, 'connection'),
  5001: of('host', {}, 'info'),
  5019: of('host configuration', {}, 'info'),
  6003: of('api', crud),
};

const findings = 2;
const inventory = 5001;
/** Categories whose types include `allowed` and `denied`. */
const judged: ReadonlySet<string> = new Set(['network', 'intrusion_detection', 'api']);
const none: readonly string[] = [];

/** Kind, categories and types of an event. */
export function ecsClassOf(ocsf: OcsfEvent): {
  readonly kind: string;
  readonly category: readonly string[];
  readonly type: readonly string[];
} {
  const { category_uid, class_uid, activity_id } = ocsf;
  const kind = category_uid === findings ? 'alert' : class_uid === inventory ? 'state' : 'event';
  const text = classes[countOf(class_uid) ?? -1];
  if (text === undefined) return { kind, category: none, type: none };
  const { category, types, always } = text;
  const own = types[countOf(activity_id) ?? -1];
  const type = own === undefined ? [...always] : [...always, own];
  const verdict = deviceVerdict(ocsf);
  if (verdict === null) return { kind, category, type };
  // `web` has no such types: a request with a verdict is also network traffic.
  const isWeb = category[0] === 'web';
  if ((isWeb || judged.has(category[0] ?? '')) && verdict !== own) type.push(verdict);
  return { kind, category: isWeb ? [...category, 'network'] : category, type };
}
