// The second entry point of formats: texts of an event that sinks share with formats.

export { flatFactsOf } from './flat-facts.ts';
export { actingUser, textOf } from './parts.ts';
export { wholeSentence } from './sentence.ts';
export { cutToBytes } from './text.ts';
