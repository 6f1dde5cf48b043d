// Secrets of the config, and the two texts that are checked where a secret is used: a header's value and
// the address of a proxy. Invariant: no text, JSON or inspection of a Secret shows its value.

import { inspect } from 'node:util';
import { ExportError } from './errors.ts';

/**
 * A value that is never printed. It is read again at each use, so a secret rotated in its file or
 * environment applies without a restart. Converting it to text or JSON, or inspecting it, gives
 * `[secret]`.
 */
export class Secret {
  #read: () => string;
  #reference: string | null = null;
  #refresh: (() => Promise<void>) | null = null;

  constructor(read: () => string) {
    this.#read = read;
  }

  /** The current value. Throws an ExportError if a reference can no longer be read. */
  reveal(): string {
    return this.#read();
  }

  /** The reference in the config; null: a literal value, or several references. */
  get reference(): string | null {
    return this.#reference;
  }

  /** Called once by the config reader, to bind the secret to its reference. */
  bind(
    read: () => string,
    reference: string | null = null,
    refresh: (() => Promise<void>) | null = null,
  ): void {
    this.#read = read;
    this.#reference = reference;
    this.#refresh = refresh;
  }

  /**
   * Runs the command behind the value again, at most once in 30 s. Called before a token request and after a refused
   * credential. Never rejects: a failure keeps the last value. Does nothing for a value without a command.
   */
  async refresh(): Promise<void> {
    await this.#refresh?.();
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}

/** The value of `proxy` that takes the proxy from the environment. */
export const proxyOfEnvironment = 'env';

/** The flaw of a proxy address; null: none. The address may contain a password and is not shown. */
export function proxyFlaw(text: string): string | null {
  const broken = /%(?![0-9A-Fa-f]{2})/.exec(text);
  if (broken !== null) {
    return `the % at position ${broken.index + 1} begins no escape; in user and password write %25 for %`;
  }
  if (!/^https?:\/\/[^/?#]+\/?$/.test(text) || !URL.canParse(text)) {
    return 'expected the address of a proxy, such as http://proxy.example:3128; in user and password write %2F for /, %3F for ?, %23 for # and %40 for @';
  }
  try {
    decodeURIComponent(text);
    return null;
  } catch {
    return 'an escape (%) in user or password is not UTF-8; write each byte of its UTF-8 form as % and two hex digits';
  }
}

/**
 * A secret's value for a header. Throws `config_invalid` with the setting's path if the value has
 * characters that a header must not have.
 */
export function headerValue(secret: Secret, what: string): string {
  const value = secret.reveal();
  // RFC 9110, section 5.5; undici accepts Latin-1.
  const at = value.search(/[^\t\x20-\x7e\x80-\xff]/);
  if (at < 0) return value;
  const from = secret.reference === null ? what : `${what}, from ${secret.reference},`;
  const kind = /[\r\n]/.test(value.charAt(at))
    ? 'a line end'
    : 'a character that no header can have';
  throw new ExportError('config_invalid', `${from} holds ${kind} at position ${at + 1}`, {
    next: 'Write the value alone, on one line.',
  });
}
