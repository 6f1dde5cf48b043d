// The completion scripts, one for each shell, generated from the command tree. All three find the command that the
// words before the cursor lead to, and offer its possible next words. Invariant: a script starts no program, and
// completes other commands as before.

/** The possible values of an option or argument: a choice, a file, or free text. */
export type Follow = { readonly choices: readonly string[] } | 'file' | 'text';

/** A command, and its possible next words. */
export interface CompletionCommand {
  /** Names from the top, such as `dead-letters list`; empty: sluice itself. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly {
    /** `-c`, `--config`. */
    readonly flags: readonly string[];
    readonly about: string;
    /** Null: it has no value. */
    readonly value: Follow | null;
  }[];
  /** The kind of its first argument; null: it has none. */
  readonly argument: Follow | null;
}

/** A possible word, and its meaning. */
interface Word {
  readonly text: string;
  readonly about: string;
}

/** The scripts, by shell. */
export const scripts = { bash, zsh, fish } as const;

/** Commands, and arguments that are one of a few. */
function wordsAt({ commands, argument }: CompletionCommand): readonly Word[] {
  const choices = isChoice(argument) ? argument.choices : [];
  return [...commands, ...choices.map((text) => ({ text, about: '' }))];
}

function optionsAt({ options }: CompletionCommand): readonly Word[] {
  return options.flatMap(({ flags, about }) => flags.map((text) => ({ text, about })));
}

/** `PATH:OPTION` of each option with a value, by the kind of value. */
function valued(
  commands: readonly CompletionCommand[],
  requested: (value: Follow) => boolean,
): readonly string[] {
  return commands.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) =>
      value !== null && requested(value) ? flags.map((flag) => `${path}:${flag}`) : [],
    ),
  );
}

const isFile = (value: Follow) => value === 'file';
const isText = (value: Follow) => value === 'text';

function isChoice(value: Follow | null): value is Exclude<Follow, string> {
  return typeof value === 'object' && value !== null;
}

function paths(commands: readonly CompletionCommand[]): readonly string[] {
  return commands.flatMap(({ path }) => (path === '' ? [] : [path]));
}

/** A text in single quotes, as bash and zsh read it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** One arm of a `case`; none where there is no pattern. */
function arm(patterns: readonly string[], then: string): readonly string[] {
  return patterns.length === 0 ? [] : [`    ${patterns.map(quoted).join('|')}) ${then} ;;`];
}

/**
 * Shared by bash and zsh: finds the command that the words lead to, then its possible next words. Of the commands with
 * subcommands only `backfill` has options with values; a value that reads like a subcommand would be mistaken for one.
 */
function walked(
  commands: readonly CompletionCommand[],
  shell: {
    readonly words: string;
    readonly current: string;
    readonly files: string;
    readonly choices: (choices: readonly string[]) => string;
    readonly at: (command: CompletionCommand) => string;
  },
): readonly string[] {
  const { words, current, files, choices, at } = shell;
  return [
    `  for ((; i < ${current}; i++)); do`,
    `    next="\${cmd_path:+$cmd_path }\${${words}[i]}"`,
    '    case "$next" in',
    ...arm(paths(commands), 'cmd_path=$next').map((line) => `  ${line}`),
    '    esac',
    '  done',
    `  case "$cmd_path:\${${words}[${current}-1]}" in`,
    ...arm(valued(commands, isFile), `${files}; return`),
    ...arm(valued(commands, isText), 'return'),
    ...commands.flatMap(({ path, options }) =>
      options.flatMap(({ flags, value }) =>
        isChoice(value)
          ? arm(
              flags.map((flag) => `${path}:${flag}`),
              `${choices(value.choices)}; return`,
            )
          : [],
      ),
    ),
    '  esac',
    '  case "$cmd_path" in',
    ...commands.flatMap((command) => arm([command.path], at(command))),
    '  esac',
  ];
}

function bash(commands: readonly CompletionCommand[]): string {
  const offer = (words: readonly string[]) => `_sluice_words ${quoted(words.join(' '))}`;
  return [
    '# bash completion of sluice. In ~/.bashrc: source <(npx sluice completion bash)',
    '_sluice_words() { COMPREPLY=($(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")); }',
    '_sluice_files() {',
    `  local IFS=$'\\n'`,
    '  compopt -o filenames 2>/dev/null',
    '  COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    '_sluice() {',
    `  local i next cmd_path='' IFS=$' \\t\\n'`,
    '  COMPREPLY=()',
    '  for ((i = 0; i < COMP_CWORD; i++)); do [[ ${COMP_WORDS[i]##*/} == sluice ]] && break; done',
    '  ((i++ < COMP_CWORD)) || return 1',
    ...walked(commands, {
      words: 'COMP_WORDS',
      current: 'COMP_CWORD',
      files: '_sluice_files',
      choices: offer,
      at: (command) => {
        const all = offer([...wordsAt(command), ...optionsAt(command)].map(({ text }) => text));
        const dash = `[[ \${COMP_WORDS[COMP_CWORD]} == -* ]]`;
        return command.argument === 'file'
          ? `if ${dash}; then ${all}; else _sluice_files; fi`
          : all;
      },
    }),
    '}',
    'complete -F _sluice sluice',
    'complete -p npx >/dev/null 2>&1 || complete -o default -F _sluice npx',
  ].join('\n');
}

function zsh(commands: readonly CompletionCommand[]): string {
  const described = ({ text, about }: Word) =>
    quoted(`${text.replaceAll(':', '\\:')}${about === '' ? '' : `:${about}`}`);
  const offer = (what: string, words: readonly Word[]) =>
    `described=(${words.map(described).join(' ')}); _describe ${what} described`;
  return [
    '#compdef sluice',
    '# zsh completion of sluice. In ~/.zshrc, after compinit: source <(npx sluice completion zsh)',
    '_sluice() {',
    `  local i next cmd_path=''`,
    '  local -a described',
    '  for ((i = 1; i < CURRENT; i++)); do [[ ${words[i]:t} == sluice ]] && break; done',
    '  ((i++ < CURRENT)) || { _default; return }',
    ...walked(commands, {
      words: 'words',
      current: 'CURRENT',
      files: '_files',
      choices: (choices) => `compadd -- ${choices.map(quoted).join(' ')}`,
      at: (command) => {
        const words = wordsAt(command);
        return [
          ...(words.length === 0 ? [] : [offer('command', words)]),
          ...(command.argument === 'file' ? ['_files'] : []),
          offer('-o option', optionsAt(command)),
        ].join('; ');
      },
    }),
    '}',
    'if (( $+functions[compdef] )); then',
    '  compdef _sluice sluice',
    '  (( $+_comps[npx] )) || compdef _sluice npx',
    'fi',
  ].join('\n');
}

function fish(commands: readonly CompletionCommand[]): string {
  const lines = commands.flatMap((command) => {
    const at = `-n "__sluice_at '${command.path}'"`;
    return [
      `${at} ${command.argument === 'file' ? '-F' : '-f'}`,
      ...wordsAt(command).map(({ text, about }) => `${at} -a ${text} -d ${fishQuoted(about)}`),
      ...command.options.map((option) => `${at} ${fishOption(option)}`),
    ];
  });
  return [
    '# fish completion of sluice. In ~/.config/fish/config.fish: npx sluice completion fish | source',
    'function __sluice_at',
    '    set -l cmd_path',
    '    set -l found no',
    '    for word in (commandline -opc)',
    '        if test $found = no',
    "            string match -qr '(^|/)sluice$' -- $word; and set found yes",
    '        else',
    '            set -l next (string trim -- "$cmd_path $word")',
    `            contains -- "$next" ${paths(commands).map(quoted).join(' ')}; and set cmd_path $next`,
    '        end',
    '    end',
    '    test $found = yes -a "$cmd_path" = "$argv[1]"',
    'end',
    ...['sluice', 'npx'].flatMap((name) => lines.map((line) => `complete -c ${name} ${line}`)),
  ].join('\n');
}

function fishOption({ flags, about, value }: CompletionCommand['options'][number]): string {
  const names = flags.map((flag) =>
    flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
  );
  return [...names, ...fishValue(value), `-d ${fishQuoted(about)}`].join(' ');
}

function fishValue(value: Follow | null): readonly string[] {
  if (value === null) return [];
  if (value === 'file') return ['-r -F'];
  return isChoice(value) ? ['-x', `-a ${fishQuoted(value.choices.join(' '))}`] : ['-x'];
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
