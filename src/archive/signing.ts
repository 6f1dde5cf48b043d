// The configured signer of an archive: a key's text, or a command that signs so that sluice never has the key.
// Invariant: no message contains a key.

import { z } from 'zod';
import { duration, secret } from '../contracts/config.ts';
import { ExportError, errorText, Secret } from '../contracts/index.ts';
import { parseSigningKey, parseVkey, type Signer } from './note.ts';
import { commandSigner } from './signing-command.ts';

/** The keys of the config's block. */
export const signingKeys = {
  origin: z
    .string()
    .min(1)
    .optional()
    .describe('the log’s name, which is the signing key’s; given, it must be that'),
  signing_key: secret()
    .optional()
    .describe('the key that `sluice archive keys new` has made, usually `${file:…}`'),
  signing_key_command: z
    .strictObject({
      run: z
        .array(secret())
        .min(1)
        .describe(
          'program and arguments, run without a shell: gets the text to sign on stdin, and writes its Ed25519 signature to stdout, 64 bytes or base64',
        ),
      public_key: z.string().describe('the vkey of its key; a signature by another key is refused'),
      timeout: duration().prefault('10s').describe('bound on one signature'),
    })
    .optional()
    .describe('instead of `signing_key`: a command that signs, such as a client of an HSM'),
};

/** The settings of a signer, as the sink's schema has parsed them. */
export const signingSettings = z.object({
  origin: z.string().optional(),
  /** The shard whose log is signed, if there are several; set by config/shards.ts, never in a config. */
  shard: z.int().optional(),
  signing_key: z.instanceof(Secret).optional(),
  signing_key_command: z
    .object({ run: z.array(z.instanceof(Secret)), public_key: z.string(), timeout: z.number() })
    .optional(),
});

/** The settings from which a signer is made. */
export type SigningSettings = Readonly<z.output<typeof signingSettings>>;

/** The flaw of settings that are valid separately; null: none. */
export function signingFlaw(settings: SigningSettings): string | null {
  const isKey = settings.signing_key !== undefined;
  if (isKey !== (settings.signing_key_command !== undefined)) return null;
  return isKey
    ? 'signing_key and signing_key_command are both set: remove one'
    : 'it has no signing_key (nor signing_key_command): make one with `sluice archive keys new FILE`, and name it as signing_key: ${file:FILE}';
}

/** The flaw of an operator's key; null: none. */
export function operatorFlaw(vkey: string): string | null {
  try {
    parseVkey(vkey.trim());
    return null;
  } catch (error) {
    return `operators: ${JSON.stringify(vkey)} is no public key (vkey): ${errorText(error)}`;
  }
}

/** The configured signer. Throws an ExportError that contains no key. */
export function signerOf(settings: SigningSettings): Signer {
  const { origin, signing_key_command: command } = settings;
  const key = command === undefined ? 'signing_key' : 'signing_key_command.public_key';
  try {
    const signer = signerBy(settings);
    const { name } = signer.verifier;
    if (origin === undefined || origin === name) return signer;
    throw new SyntaxError(`it is a key of ${name}, and origin is ${origin}`);
  } catch (error) {
    if (error instanceof ExportError) throw error;
    throw new ExportError('sink_refused', `reading ${key}: ${errorText(error)}`, {
      next:
        command === undefined
          ? 'Make a key with `sluice archive keys new FILE`, and name it as signing_key: ${file:FILE}.'
          : 'Name the vkey of the key that the command signs with; `sluice archive keys show PUBLIC.pem --origin NAME` prints it.',
    });
  }
}

function signerBy({ signing_key: key, signing_key_command: command }: SigningSettings): Signer {
  if (command !== undefined) return commandSigner(command, parseVkey(command.public_key.trim()));
  return parseSigningKey(key?.reveal() ?? '');
}
