// The entry point of src/send: routes, filters and the event as a sink sees it. Loads no sender.

export { DecodedPage, normalisersOf, PageDecoder } from './held-event.ts';
export { leadsTo, maskRoutes, type Selection, selectionFor, withAllMasks } from './route.ts';
