// The names of the logs that one key signs. A log is called as its key is, and the archives of several
// shards, which all have the key of the config, are `<name>/<number of the shard>`: what knows a log
// by its name, such as a witness, knows each for itself. What must stay true: whoever has the key, or
// its public half, finds the names of all of them; and a log that was begun keeps the name it has.

import { renamedKey, type Signer, type Verifier } from './note.ts';

/** A key as it signs the log of a shard. */
function keyOfShard(key: Verifier, shard: number): Verifier {
  return renamedKey(key, logOfShard(key, shard));
}

/** The name of a shard's log, which this key signs. */
export function logOfShard({ name }: Verifier, shard: number): string {
  return `${name}/${shard}`;
}

/** Of which shard the log of that name is, where this key signs it; null: of none. */
export function shardOfLog({ name }: Verifier, origin: string): number | null {
  const number = origin.startsWith(`${name}/`) ? origin.slice(name.length + 1) : '';
  return /^(0|[1-9]\d{0,8})$/.test(number) ? Number(number) : null;
}

/** A key as it signs the log of that name: of a log that is none of its own it is as it was. */
export function keyOfLog(key: Verifier, origin: string): Verifier {
  const shard = shardOfLog(key, origin);
  return shard === null ? key : keyOfShard(key, shard);
}

/**
 * Who signs a log. `origin`: what it is called, null where it has not begun. Where the place says
 * which shard's it is, it is not another's.
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
