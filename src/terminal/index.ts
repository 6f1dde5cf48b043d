// The entry point of src/terminal: tables and safe text for a terminal.

export { commandOf, commandText, shellWord } from './command-text.ts';
export { readable } from './readable.ts';
export {
  type Cell,
  counted,
  errorCell,
  factLines,
  type Mood,
  painted,
  sizeText,
  stateCell,
  tableLines,
  urgentFirst,
} from './table.ts';
export { plainTextOf, visibleBytes, visibleJsonLines } from './visible.ts';
