// The common part of the sources of one resource each: the keys for its path, the ids of its
// entities, and the meaning of their changes. The documents show few fields of any resource, so
// none is required.

import { z } from 'zod';
import type { Mapping, Settings, SourceDefinition } from '../../src/contracts/config.ts';
import { endpointPath } from '../shared/upstream-path.ts';
import {
  type CollectionFacts,
  collectionFields,
  defineCollections,
  endpointFields,
} from './collection.ts';
import { mappingField, timeFormatsField } from './list.ts';

const id = '{id}';

/** A resource that a document names, as the author of its source declares it. */
export interface Resource {
  readonly type: string;
  readonly summary: string;
  readonly api: 'unified' | 'services';
  /** The name of one of its entities. */
  readonly kind: string;
  readonly path: string;
  /** The path of one entity, with `{id}`. Default: the list shows entities completely. */
  readonly detail?: string;
  /** True if the response is the single entity, not a list. */
  readonly single?: boolean;
  /** The member that holds an entity's id. Default: `id`. */
  readonly id?: string;
  readonly baseline?: 'summary' | 'full';
  readonly removals?: boolean;
  /** The mapping for entities of a first scan. Default: as changes. */
  readonly state?: Mapping;
}

/** The keys of all resources, with this resource's own defaults. */
export const resourceFields = (own: Partial<Resource> = {}) => ({
  ...collectionFields(own),
  ...endpointFields(),
  detail: endpointPath(id)
    .refine((path) => path.includes(id), 'expected {id} at the position of an entity’s id')
    .nullable()
    .default(own.detail ?? null)
    .describe(
      'path for requests of each entity by its {id}; null: the list shows complete entities',
    ),
  id: z
    .string()
    .min(1)
    .nullable()
    .default(own.id ?? 'id')
    .describe('path of an entity’s id, else `id`; null: entities have none'),
  time: z
    .array(z.string().min(1))
    .default([])
    .describe('paths of the time of an entity’s change; default: the time of reading'),
  time_formats: timeFormatsField(),
  mapping: mappingField('entity').describe(
    'OCSF class and fields of changes, if not Entity Management; fields without a mapping go to unmapped',
  ),
});

type ResourceSettings = Settings<ReturnType<typeof resourceFields>>;

/** The path of a resource. */
export const pathField = (apis: SourceDefinition['apis']) =>
  endpointPath()
    .refine(
      (path) => apis.includes('services') || !path.includes('{'),
      'the unified API has no companies',
    )
    .describe('path of the resource below base_url; {company_id}: one stream per company');

/** The collection that the settings describe. */
export function collectionFrom(
  settings: ResourceSettings & { readonly path: string },
  { kind, single = false }: Pick<Resource, 'kind' | 'single'>,
): CollectionFacts {
  const { path, detail, id: own } = settings;
  return {
    ...{ path, single, endpoint: settings },
    entity: { kind, ids: own === null ? [] : [...new Set([own, 'id'])] },
    ...(detail !== null && { detail: { path: detail, placeholder: 'id' } }),
  };
}

/** Declares a source of a resource. */
export function defineResource(resource: Resource): SourceDefinition {
  const { type, summary, api, state } = resource;
  const apis = [api];
  return defineCollections({
    ...{ type, summary, apis },
    fields: () => ({
      path: pathField(apis).default(resource.path),
      ...resourceFields(resource),
    }),
    collections: (settings) => [{ ...collectionFrom(settings, resource), called: type }],
    reading: ({ time, time_formats: timeFormats, mapping }) => ({
      ...{ time, timeFormats },
      ...(mapping ? { mapping } : state && { state }),
    }),
  });
}
