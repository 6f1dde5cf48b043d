// The results of `_bulk` for each event of the request. The status of the whole is 200 whatever the
// results of its items, so each is read: 200 and 201, and a 409 of an existing document, are
// delivered; items without space or permission for now are sent again; items that the cluster
// cannot index are refused with its reason. Invariant: a response counts only if it is a `_bulk`
// response for exactly the sent events, in their order.

import { isObject, type JsonObject } from '../../../src/contracts/index.ts';
import { parsedJson } from '../../shared/parsed-json.ts';

/** The result of one event with its reason; `denied`: no permission to write it. */
export interface ItemAnswer {
  readonly is: 'taken' | 'again' | 'denied' | 'refused';
  readonly status: number;
  /** The response reports a fault of the index or the pipeline, not of the event. */
  readonly isOfIndex: boolean;
  /** The cluster's text: hostile, and it may repeat the request. */
  readonly said: string;
}

const taken: ItemAnswer = { is: 'taken', status: 201, isOfIndex: false, said: '' };

/** The parts of a response that are read here; a cluster with filter support sends only these. */
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

/** The result of each event, in order; null if this is not a response to them. */
export function readBulkAnswer(
  body: Uint8Array,
  uids: readonly string[],
): readonly ItemAnswer[] | null {
  const answer = parsedJson(body);
  if (!isObject(answer) || !Array.isArray(answer.items)) return null;
  if (answer.items.length !== uids.length) return null;
  const answers: ItemAnswer[] = [];
  for (const [i, item] of answer.items.entries()) {
    const one = isObject(item) ? (item.create ?? item.index) : undefined;
    if (!isObject(one) || typeof one.status !== 'number') return null;
    // Some servers with `_bulk` do not repeat the id. A document of a failure store has an id of its own.
    const isOther = one._id !== undefined && one._id !== uids[i];
    if (isOther && one.failure_store !== 'used') return null;
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
