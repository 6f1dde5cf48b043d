// What the account that works with a state in Kafka must be allowed there: one list, by which it is
// looked for (inspect.ts) and printed for whoever grants it (commands/cluster/acls.ts).

import { ownersOf, type StateLogSettings } from './log/settings.ts';

/** Kafka's operations on a resource, by the names of `kafka-acls.sh --operation`. */
export type AclOperation = 'Read' | 'Write' | 'Create' | 'Delete' | 'DescribeConfigs';

/** What is allowed on a resource, or on all whose names begin with `name`. */
export interface Right {
  /** As the option of `kafka-acls.sh` is called. */
  readonly resource: 'topic' | 'transactional-id' | 'group';
  readonly pattern: 'literal' | 'prefixed';
  readonly name: string;
  /** Read, Write and Delete allow Describe as well. */
  readonly operations: readonly AclOperation[];
}

/** All that is needed; `Create` only while the topics are not there. */
export function rightsOf({ prefix }: Pick<StateLogSettings, 'prefix'>): readonly Right[] {
  const literal = { pattern: 'literal' } as const;
  return [
    {
      ...{ resource: 'topic', ...literal, name: `${prefix}.pages` },
      // Pages that every sink has are deleted.
      operations: ['Read', 'Write', 'Delete', 'DescribeConfigs', 'Create'],
    },
    ...['state', 'dead', 'control'].map(
      (name): Right => ({
        ...{ resource: 'topic', ...literal, name: `${prefix}.${name}` },
        operations: ['Read', 'Write', 'DescribeConfigs', 'Create'],
      }),
    ),
    {
      ...{ resource: 'topic', ...literal, name: `${prefix}.shards` },
      operations: ['Read', 'DescribeConfigs', 'Create'],
    },
    {
      ...{ resource: 'transactional-id', pattern: 'prefixed', name: `${prefix}.shard.` },
      operations: ['Write'],
    },
    { ...{ resource: 'group', ...literal }, name: ownersOf({ prefix }), operations: ['Read'] },
  ];
}

/** Positions in the bit fields by which brokers tell what is allowed (Kafka's `AclOperation`). */
const bits: Readonly<Record<AclOperation, number>> = {
  Read: 3,
  Write: 4,
  Create: 5,
  Delete: 6,
  DescribeConfigs: 10,
};

/** What of `wanted` a broker's bit field does not allow. */
export function notAllowed(
  field: number,
  requested: readonly AclOperation[],
): readonly AclOperation[] {
  return requested.filter((operation) => (field & (1 << bits[operation])) === 0);
}
