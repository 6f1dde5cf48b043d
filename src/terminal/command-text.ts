// Command lines of sluice for people who copy them into a shell. Invariant: a part of a path never
// becomes a word or a command of its own.

/** A command line that can be copied into a shell, such as `npx sluice status -c sluice.yaml`. */
export function commandText(command: string, file: string, ...more: readonly string[]): string {
  return ['npx sluice', command, '-c', ...[file, ...more].map(shellWord)].join(' ');
}

/** Command lines for one config, followed by their own words. */
export function commandOf(file: string): (command: string, ...words: readonly string[]) => string {
  return (command, ...words) => commandText(command, file, ...words);
}

/** A word quoted for a shell. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
