// The resources that the documents name and that upstream returns as a whole. Each is a collection
// of its own: its path, the name and id of its entities, and its own defaults.

import { defineResource } from './resource.ts';

/** `type: sites`. */
export const sitesSource = defineResource({
  type: 'sites',
  summary: 'Reads the sites of the unified API and reports their changes.',
  api: 'unified',
  kind: 'site',
  path: '/sites',
});

/** `type: web_categories`. */
export const webCategoriesSource = defineResource({
  type: 'web_categories',
  summary: 'Reads the URL and application categories of the unified API and reports their changes.',
  api: 'unified',
  kind: 'web_category',
  path: '/web/categories',
});

/** `type: company`. */
export const companySource = defineResource({
  type: 'company',
  summary: 'Reads each company of the services API and reports its changes.',
  api: 'services',
  kind: 'company',
  path: '/api/fleet/v1/companies/{company_id}',
  single: true,
  id: 'company_id',
});

/** `type: hosts`: an inventory first, then its changes. */
export const hostsSource = defineResource({
  type: 'hosts',
  summary: 'Reads the hosts of the services API, as an inventory and then their changes.',
  api: 'services',
  kind: 'host',
  path: '/api/fleet/v1/companies/{company_id}/hosts',
  detail: '/api/fleet/v1/hosts/{id}',
  id: 'host_id',
  baseline: 'full',
  // The document shows no field of a host; fields not under one of these names are in `unmapped`.
  state: {
    class: 'inventory_info',
    fields: {
      'device.uid': 'entity_id',
      'device.name': ['name', 'display_name', 'host_name'],
      'device.hostname': ['hostname', 'fqdn'],
      'device.type': ['type', 'device_type'],
      'device.ip': ['ip', 'ip_address', 'management_ip', 'address'],
      'device.mac': ['mac', 'mac_address'],
      'device.model': 'model',
      'device.vendor_name': ['vendor', 'manufacturer'],
      'device.hw_info.serial_number': ['serial_number', 'serial'],
      'device.region': 'region',
      'device.desc': 'description',
      'device.owner.name': ['owner.name', 'owner_name'],
      'device.owner.email_addr': ['owner.email', 'owner_email'],
      'device.last_seen_time': ['last_seen', 'last_seen_at'],
    },
  },
});

/** `type: block_list`. */
export const blockListSource = defineResource({
  type: 'block_list',
  summary: 'Reads the block lists of the services API and reports their changes.',
  api: 'services',
  kind: 'block_list_entry',
  path: '/api/threat-protection/v1/companies/{company_id}/block-list-entries',
  id: 'entry_id',
});

/** `type: exclusion_list`. */
export const exclusionListSource = defineResource({
  type: 'exclusion_list',
  summary: 'Reads the exclusion lists of the services API and reports their changes.',
  api: 'services',
  kind: 'exclusion_list_entry',
  path: '/api/threat-protection/v1/companies/{company_id}/exclusion-list-entries',
  id: 'entry_id',
});

/** `type: tickets`. One that leaves the list is most likely archived, which is not a removal. */
export const ticketsSource = defineResource({
  type: 'tickets',
  summary: 'Reads the tickets of the services API and reports their changes.',
  api: 'services',
  kind: 'ticket',
  path: '/api/ticketing/v1/companies/{company_id}/tickets',
  id: 'ticket_id',
  baseline: 'full',
  removals: false,
});
