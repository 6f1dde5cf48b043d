// Finds secrets in plain text, which every reader of the file, a backup or a repository can see, and text that looks
// like a failed reference, such as "$SECRET".

import type { Flaws, Path } from './flaws.ts';
import type { WrittenValue } from './written.ts';

/** Keys whose values are secrets; a client id, a proxy's address or a mode is none. */
const secretKeys =
  /secret|token|password|api_key|credential|signing_key$|^key$|authorization|cookie/i;
const meantAsReference = /^(\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{\{.*\}\}|<[^<>]+>)$/;

/** Adds a notice for each. */
export function plainSecretNotices(written: WrittenValue, flaws: Flaws, path: Path = []): void {
  for (const [key, child] of written.children ?? []) {
    plainSecretNotices(child, flaws, [...path, key]);
  }
  const { isSecret, template, value, at } = written;
  if (!isSecret || template !== null || typeof value !== 'string') return;
  const name = String(path.findLast((step) => typeof step === 'string') ?? '');
  const next = 'write ${env:NAME}, ${file:/path} or ${exec:COMMAND}';
  if (meantAsReference.test(value)) {
    flaws.add(at, path, `this text is the secret itself and no reference; ${next}`, 'notice');
  } else if (secretKeys.test(name)) {
    flaws.add(at, path, `this secret is plain text; ${next}`, 'notice');
  }
}
