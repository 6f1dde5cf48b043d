// The list of sources: a source exists only if it is listed here. The reference page, the JSON
// Schema and the contract suite in test/contracts/ are generated from this list. To add one: write
// it beside this file, add its line here, and give the contract suite an upstream for it.

import type { SourceDefinition } from '../../src/contracts/config.ts';
import { collectionSource } from './any-collection.ts';
import { auditEventsSource } from './audit-events.ts';
import { firewallSource } from './firewall.ts';
import { logsSource } from './logs.ts';
import {
  blockListSource,
  companySource,
  exclusionListSource,
  hostsSource,
  sitesSource,
  ticketsSource,
  webCategoriesSource,
} from './resources.ts';
import {
  changesSource,
  incidentTimelineSource,
  investigationsSource,
  ticketEventsSource,
} from './timelines.ts';
import { webhooksSource } from './webhooks.ts';

/** Every source that a config can name, in the order of the reference page. */
export const sources: readonly SourceDefinition[] = [
  auditEventsSource,
  logsSource,
  firewallSource,
  sitesSource,
  webCategoriesSource,
  companySource,
  hostsSource,
  blockListSource,
  exclusionListSource,
  ticketsSource,
  ticketEventsSource,
  incidentTimelineSource,
  investigationsSource,
  changesSource,
  collectionSource,
  webhooksSource,
];
