// Command lines of sluice as they are shown to people, who copy them into a shell: what stands in a
// path must not become a word or a command of its own.

/** A command line that can be copied into a shell, such as `npx sluice status -c sluice.yaml`. */
export function commandText(command: string, file: string, ...more: readonly string[]): string {
  return ['npx sluice', command, '-c', ...[file, ...more].map(shellWord)].join(' ');
}

/** Such command lines for one config, their own words behind it. */
export function commandOf(file: string): (command: string, ...words: readonly string[]) => string {
  return (command, ...words) => commandText(command, file, ...words);
}

/** A word as a shell reads it back. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
