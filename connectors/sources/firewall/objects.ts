// The firewall objects of one company: one list, and nothing to read an object by its id with, so that a removal rests on
// complete readings alone. Shared objects stand in each company's list.

import type { SnapshotStream } from '../../../src/contracts/source.ts';
import { type FirewallScope, readFirewallList, streamFacts } from './endpoints.ts';
import { rowEntities } from './entities.ts';

const objectIds = ['id', 'object_id'];

/** The stream `<source>/<company>/objects`. */
export function objectsStream(scope: FirewallScope): SnapshotStream {
  return {
    ...streamFacts(scope, 'objects'),
    async readEverything(signal) {
      const list = { resource: 'objects', ids: objectIds };
      const listing = await readFirewallList(scope, list, signal);
      if (listing.outcome !== 'ok') return listing;
      const rows = scope.withShared
        ? listing.rows
        : listing.rows.filter(({ value }) => value.shared !== true);
      return {
        outcome: 'ok',
        complete: listing.flaw === null,
        entities: rowEntities('object', rows),
        ...(listing.flaw === null ? {} : { cause: listing.flaw }),
      };
    },
  };
}
