// The names of the logs signed by one key. A log has the name of its key; the logs of several shards, which share the
// config's key, are `<name>/<shard number>`. So a party that identifies logs by name, such as a witness, handles each
// separately. Invariants: the names of all logs follow from the key or its public half; an existing log keeps its name.

import { renamedKey, type Signer, type Verifier } from './note.ts';

/** A key under the log name of a shard. */
function keyOfShard(key: Verifier, shard: number): Verifier {
  return renamedKey(key, logOfShard(key, shard));
}

/** The name of a shard's log, signed by this key. */
export function logOfShard({ name }: Verifier, shard: number): string {
  return `${name}/${shard}`;
}

/** The shard of a log with this name, if this key signs it; null: none. */
export function shardOfLog({ name }: Verifier, origin: string): number | null {
  const number = origin.startsWith(`${name}/`) ? origin.slice(name.length + 1) : '';
  return /^(0|[1-9]\d{0,8})$/.test(number) ? Number(number) : null;
}

/** A key under this log name; for a log of another key, the key is unchanged. */
export function keyOfLog(key: Verifier, origin: string): Verifier {
  const shard = shardOfLog(key, origin);
  return shard === null ? key : keyOfShard(key, shard);
}

/**
 * The signer of a log. `origin`: its name, null if it does not exist yet. If the location names a shard, the log must
 * belong to it.
 */
export function signerOfLog(
  signer: Signer,
  { shard, origin }: { readonly shard: number | undefined; readonly origin: string | null },
): Signer {
  const { verifier } = signer;
  const begun = origin === null ? (shard ?? null) : shardOfLog(verifier, origin);
  if (begun === null || (shard !== undefined && begun !== shard)) return signer;
  return { ...signer, verifier: keyOfShard(verifier, begun) };
}
