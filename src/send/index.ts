// The entry point of src/send: routes, filters and the event as a sink sees it. Loads no sender.

export {
  compileFilter,
  type EventPath,
  type Filter,
  type FilterComparison,
  filterParts,
  valuesNeeded,
} from './filter.ts';
export { DecodedPage, PageDecoder } from './held-event.ts';
export { type MaskKind, maskKinds } from './mask.ts';
export { normalisersOf } from './normalisers.ts';
export {
  leadsTo,
  maskRoutes,
  type Route,
  type Selection,
  selectionFor,
  withAllMasks,
} from './route.ts';
