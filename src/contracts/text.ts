// Characters that do something to whoever looks at text, or cannot be seen: controls (C0, DEL, and
// C1 with the 8-bit CSI U+009B, which steers terminals as ESC does), line and paragraph separators,
// format characters with the marks that turn text around (U+061C, U+200E, U+202A to U+202E, U+2066
// to U+2069), and halves of pairs. Records and far sides are hostile, so none of these reaches a
// terminal, a log line or a message as it is; what counts as one is said only here.

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const unseenRuns = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu;
/** Without the C0 controls: those in a command's output are its own line ends and colours. */
const unseenBeyondAscii = /[\u007f-\u009f\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text in one line, each run of such characters a blank. */
export function plainText(text: string): string {
  return text.replace(unseenRuns, ' ');
}

/** The text in one line, each such character written as JSON writes it: `\u001b`. */
export function visibleText(text: string): string {
  return text.replace(unseen, escaped);
}

/** What a command prints; only what is beyond ASCII is from elsewhere. JSON keeps its meaning. */
export function visibleOutput(text: string): string {
  return text.replace(unseenBeyondAscii, escaped);
}

/** Encoded lines, each with its LF, for a terminal. JSON keeps its meaning. */
export function visibleLines(lines: Uint8Array): Uint8Array {
  const text = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength).toString('utf8');
  const shown = text.split('\n').map(visibleText).join('\n');
  return shown === text ? lines : Buffer.from(shown);
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => {
    const unit = character.charCodeAt(i).toString(16).padStart(4, '0');
    return `\\u${unit}`;
  }).join('');
}
