// What an answer of `_bulk` means for each event of the request. The status of the whole is 200
// whatever became of its items, so each is read: 200 and 201, and a 409 of one that is there already,
// are delivered; what the cluster has no room or no rights for now is sent again; what it cannot
// take is refused with its reason. What must stay true: an answer counts only where it is a `_bulk`
// answer for exactly the events that were sent, in their order.

import { isObject, type Json, type JsonObject } from '../../../src/contracts/json.ts';

/** What became of one event, and why; `denied`: the cluster gives us no right to write it. */
export interface ItemAnswer {
  readonly is: 'taken' | 'again' | 'denied' | 'refused';
  readonly status: number;
  /** The answer reports a fault of the index or the pipeline, not of the event. */
  readonly isOfIndex: boolean;
  /** The cluster's words: hostile, and they may hold what it was sent. */
  readonly said: string;
}

const taken: ItemAnswer = { is: 'taken', status: 201, isOfIndex: false, said: '' };

/** The parts of an answer that are read here; the rest is not sent where the cluster heeds it. */
export const answerParts = [
  'errors',
  'items.*._id',
  'items.*.status',
  'items.*.failure_store',
  'items.*.error.type',
  'items.*.error.reason',
  'items.*.error.caused_by.type',
  'items.*.error.caused_by.reason',
].join();

/** What became of each event, in their order; null where this is no answer to them. */
export function readBulkAnswer(
  body: Uint8Array,
  uids: readonly string[],
): readonly ItemAnswer[] | null {
  const answer = parsed(body);
  if (!isObject(answer) || !Array.isArray(answer.items)) return null;
  if (answer.items.length !== uids.length) return null;
  const answers: ItemAnswer[] = [];
  for (const [i, item] of answer.items.entries()) {
    const one = isObject(item) ? (item.create ?? item.index) : undefined;
    if (!isObject(one) || typeof one.status !== 'number') return null;
    // Some receivers that speak `_bulk` do not repeat the id.
    if (one._id !== undefined && one._id !== uids[i]) return null;
    answers.push(itemAnswer(one, one.status));
  }
  return answers;
}

function itemAnswer(item: JsonObject, status: number): ItemAnswer {
  if (status === 200 || status === 201) {
    if (item.failure_store !== 'used') return taken;
    const said = 'the data stream refused it and put it into its failure store';
    return { is: 'refused', status, isOfIndex: false, said };
  }
  const error = isObject(item.error) ? item.error : {};
  if (status === 409 && error.type === 'version_conflict_engine_exception') return taken;
  const said = errorWords(error) || 'no reason given';
  if (status === 401 || status === 403) return { is: 'denied', status, isOfIndex: true, said };
  const waits = status < 400 || status === 408 || status === 409 || status === 429;
  const isOfIndex = status !== 429 && (status === 404 || isFaultOfIndex(error));
  return { is: waits || status >= 500 ? 'again' : 'refused', status, isOfIndex, said };
}

/**
 * Errors about an index, alias, data stream, pipeline or the cluster's limits, by type and words
 * (org.elasticsearch.indices, org.elasticsearch.common.ValidationException, and OpenSearch's own).
 */
const typesOfIndex =
  /^(index_closed|index_not_found|validation|invalid_index_name|invalid_alias_name|cluster_block|index_create_block|resource_not_found|no_shard_available_action|unavailable_shards|illegal_index_shard_state)_exception$/;
const wordsOfIndex =
  /pipeline(?: with id)? \[[^\]]*\] (?:does not exist|is missing)|no write index is defined|data stream|cannot (?:be )?(?:auto-?)?create|maximum (?:normal )?shards open|index .{0,260} (?:is closed|blocked)/i;

function isFaultOfIndex(error: JsonObject): boolean {
  const { type, reason, caused_by: cause } = error;
  if (typeof type === 'string' && typesOfIndex.test(type)) return true;
  if (typeof reason === 'string' && wordsOfIndex.test(reason)) return true;
  return isObject(cause) && isFaultOfIndex(cause);
}

function errorWords({ type, reason, caused_by: cause }: JsonObject): string {
  const own = [type, reason].filter((word) => typeof word === 'string').join(': ');
  const below = isObject(cause) ? errorWords(cause) : '';
  return below === '' || own.includes(below) ? own : `${own}; ${below}`;
}

function parsed(body: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}
