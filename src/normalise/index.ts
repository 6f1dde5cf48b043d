// The entry point of src/normalise: records to OCSF.

export { withInvalidUtf8 } from './envelope.ts';
export { setBySluice } from './mapping.ts';
export { compileNormaliser, mappingFlaws, type Normalise } from './normalise.ts';
export { withNumberNames } from './number-names.ts';
export {
  type Attribute,
  type AttributeType,
  type ClassName,
  classNames,
  namedClass,
  objectOf,
  type Shape,
} from './schema.ts';
export type { Attention, Passing } from './slots.ts';
export { parseTime, parseUsualTime } from './time.ts';
export { isIp } from './values.ts';
