// The rights that the account of a state in Kafka needs: one list, which `check --connect` compares (inspect.ts) and
// `sluice cluster acls` prints.

import { ownersOf, type StateLogSettings } from './log/settings.ts';

/** Kafka's operations on a resource, by the names of `kafka-acls.sh --operation`. */
export type AclOperation = 'Read' | 'Write' | 'Create' | 'Delete' | 'DescribeConfigs';

/** Rights on a resource, or on all resources whose names begin with `name`. */
export interface Right {
  /** The name of the option of `kafka-acls.sh`. */
  readonly resource: 'topic' | 'transactional-id' | 'group';
  readonly pattern: 'literal' | 'prefixed';
  readonly name: string;
  /** Read, Write and Delete imply Describe. */
  readonly operations: readonly AclOperation[];
}

/** All rights; `Create` is needed only until the topics exist. */
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

/** Bits of the allowed operations in responses of brokers (Kafka's `AclOperation`). */
const bits: Readonly<Record<AclOperation, number>> = {
  Read: 3,
  Write: 4,
  Create: 5,
  Delete: 6,
  DescribeConfigs: 10,
};

/** The operations that a broker's bit field does not allow. */
export function notAllowed(
  field: number,
  requested: readonly AclOperation[],
): readonly AclOperation[] {
  return requested.filter((operation) => (field & (1 << bits[operation])) === 0);
}
