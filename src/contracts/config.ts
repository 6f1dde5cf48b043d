// The second entry point of src/contracts: how a config block is declared, with zod.

export { type Compression, compressed, compression } from './compression.ts';
export {
  type CollectionReading,
  defineFormat,
  defineSink,
  defineSource,
  type Fields,
  type FormatChoice,
  type FormatDefinition,
  type Inspection,
  type ListReading,
  type Mapping,
  type OwnThing,
  type ParentsReading,
  type RecordReading,
  type Settings,
  type SetupDeps,
  type SharedPromise,
  type SinkDefinition,
  type SinkSettings,
  type SourceDefinition,
  type SourceOpening,
  type SourceSettings,
} from './definition.ts';
export {
  enrichField,
  type LookupName,
  lookupNames,
  type NumberNames,
  requestedLookups,
} from './lookups.ts';
export {
  count,
  duration,
  type HostPort,
  headers,
  hostPortSetting,
  hostPortText,
  isLoopback,
  parseHostPort,
  proxy,
  residency,
  secret,
  size,
  timeZone,
  tls,
} from './settings.ts';
