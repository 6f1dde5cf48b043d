// The scripts that complete a command line, one for each shell, written from what can be typed
// where. All three find the command that the words before the cursor lead to, and offer what can
// follow it. What must stay true: a script starts no program, and completes what is not sluice's as
// it was completed before.

/** What can follow an option or be an argument: a choice, a file, or a text to be typed. */
export type Follow = { readonly choices: readonly string[] } | 'file' | 'text';

/** A command, and what can be typed behind it. */
export interface CompletionPlace {
  /** Names from the top, such as `dead-letters list`; empty: sluice itself. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly {
    /** `-c`, `--config`. */
    readonly flags: readonly string[];
    readonly about: string;
    /** Null: it takes none. */
    readonly value: Follow | null;
  }[];
  /** What its first argument is; null: it takes none. */
  readonly argument: Follow | null;
}

/** A word that can be typed, and what it means. */
interface Word {
  readonly text: string;
  readonly about: string;
}

/** The scripts, by shell. */
export const scripts = { bash, zsh, fish } as const;

/** Commands, and arguments that are one of a few. */
function wordsAt({ commands, argument }: CompletionPlace): readonly Word[] {
  const choices = isChoice(argument) ? argument.choices : [];
  return [...commands, ...choices.map((text) => ({ text, about: '' }))];
}

function optionsAt({ options }: CompletionPlace): readonly Word[] {
  return options.flatMap(({ flags, about }) => flags.map((text) => ({ text, about })));
}

/** `PATH:OPTION` of each option that takes a value, by what that is. */
function valued(
  places: readonly CompletionPlace[],
  requested: (value: Follow) => boolean,
): readonly string[] {
  return places.flatMap(({ path, options }) =>
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

/** Paths of all commands. */
function paths(places: readonly CompletionPlace[]): readonly string[] {
  return places.flatMap(({ path }) => (path === '' ? [] : [path]));
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
 * What bash and zsh share: which command the words lead to, then what can follow. Of the commands
 * with commands below them only `backfill` has options with values: one that reads like such a
 * command would be taken for it.
 */
function walked(
  places: readonly CompletionPlace[],
  shell: {
    readonly words: string;
    readonly current: string;
    readonly files: string;
    readonly choices: (choices: readonly string[]) => string;
    readonly at: (place: CompletionPlace) => string;
  },
): readonly string[] {
  const { words, current, files, choices, at } = shell;
  return [
    `  for ((; i < ${current}; i++)); do`,
    `    next="\${place:+$place }\${${words}[i]}"`,
    '    case "$next" in',
    ...arm(paths(places), 'place=$next').map((line) => `  ${line}`),
    '    esac',
    '  done',
    `  case "$place:\${${words}[${current}-1]}" in`,
    ...arm(valued(places, isFile), `${files}; return`),
    ...arm(valued(places, isText), 'return'),
    ...places.flatMap(({ path, options }) =>
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
    '  case "$place" in',
    ...places.flatMap((place) => arm([place.path], at(place))),
    '  esac',
  ];
}

function bash(places: readonly CompletionPlace[]): string {
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
    `  local i next place='' IFS=$' \\t\\n'`,
    '  COMPREPLY=()',
    '  for ((i = 0; i < COMP_CWORD; i++)); do [[ ${COMP_WORDS[i]##*/} == sluice ]] && break; done',
    '  ((i++ < COMP_CWORD)) || return 1',
    ...walked(places, {
      words: 'COMP_WORDS',
      current: 'COMP_CWORD',
      files: '_sluice_files',
      choices: offer,
      at: (place) => {
        const all = offer([...wordsAt(place), ...optionsAt(place)].map(({ text }) => text));
        const dash = `[[ \${COMP_WORDS[COMP_CWORD]} == -* ]]`;
        return place.argument === 'file' ? `if ${dash}; then ${all}; else _sluice_files; fi` : all;
      },
    }),
    '}',
    'complete -F _sluice sluice',
    'complete -p npx >/dev/null 2>&1 || complete -o default -F _sluice npx',
  ].join('\n');
}

function zsh(places: readonly CompletionPlace[]): string {
  const described = ({ text, about }: Word) =>
    quoted(`${text.replaceAll(':', '\\:')}${about === '' ? '' : `:${about}`}`);
  const offer = (what: string, words: readonly Word[]) =>
    `described=(${words.map(described).join(' ')}); _describe ${what} described`;
  return [
    '#compdef sluice',
    '# zsh completion of sluice. In ~/.zshrc, after compinit: source <(npx sluice completion zsh)',
    '_sluice() {',
    `  local i next place=''`,
    '  local -a described',
    '  for ((i = 1; i < CURRENT; i++)); do [[ ${words[i]:t} == sluice ]] && break; done',
    '  ((i++ < CURRENT)) || { _default; return }',
    ...walked(places, {
      words: 'words',
      current: 'CURRENT',
      files: '_files',
      choices: (choices) => `compadd -- ${choices.map(quoted).join(' ')}`,
      at: (place) => {
        const words = wordsAt(place);
        return [
          ...(words.length === 0 ? [] : [offer('command', words)]),
          ...(place.argument === 'file' ? ['_files'] : []),
          offer('-o option', optionsAt(place)),
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

function fish(places: readonly CompletionPlace[]): string {
  const lines = places.flatMap((place) => {
    const at = `-n "__sluice_at '${place.path}'"`;
    return [
      `${at} ${place.argument === 'file' ? '-F' : '-f'}`,
      ...wordsAt(place).map(({ text, about }) => `${at} -a ${text} -d ${fishQuoted(about)}`),
      ...place.options.map((option) => `${at} ${fishOption(option)}`),
    ];
  });
  return [
    '# fish completion of sluice. In ~/.config/fish/config.fish: npx sluice completion fish | source',
    'function __sluice_at',
    '    set -l place',
    '    set -l found no',
    '    for word in (commandline -opc)',
    '        if test $found = no',
    "            string match -qr '(^|/)sluice$' -- $word; and set found yes",
    '        else',
    '            set -l next (string trim -- "$place $word")',
    `            contains -- "$next" ${paths(places).map(quoted).join(' ')}; and set place $next`,
    '        end',
    '    end',
    '    test $found = yes -a "$place" = "$argv[1]"',
    'end',
    ...['sluice', 'npx'].flatMap((name) => lines.map((line) => `complete -c ${name} ${line}`)),
  ].join('\n');
}

function fishOption({ flags, about, value }: CompletionPlace['options'][number]): string {
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
