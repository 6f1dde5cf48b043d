// The licences of third parties that the one file holds: each text once, with the packages that it covers.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Component } from './bill.ts';
import { root } from './tree.ts';

/** Licences of which a text may stand for a package without a file of its own. */
const standard: ReadonlySet<string> = new Set(['MIT', 'Apache-2.0', 'ISC', 'BSD-3-Clause', '0BSD']);

/** The text of THIRD-PARTY-NOTICES. Throws if a package has no licence text and no standard licence. */
export function notices(parts: readonly Component[], nodeLicense: string): string {
  const covered = new Map<string, string[]>();
  for (const part of parts) {
    const text = textOf(part);
    covered.set(text, [
      ...(covered.get(text) ?? []),
      `${part.name} ${part.version} (${part.license})`,
    ]);
  }
  const line = `\n${'-'.repeat(78)}\n`;
  return [
    'sluice is licensed under Apache-2.0. The one-file release also holds the software below.\n',
    ...[...covered].map(([text, names]) => `${names.join('\n')}\n\n${text}\n`),
    `Node.js ${process.version} and the libraries in it\n\n${readFileSync(nodeLicense, 'utf8').trim()}\n`,
  ].join(line);
}

function textOf({ directory, license, name }: Component): string {
  const files = readdirSync(join(root, directory)).toSorted();
  const own = files.filter((file) => /^(licen[cs]e|copying|notice)([.-]|$)/i.test(file));
  if (own.length > 0) {
    return own.map((file) => readFileSync(join(root, directory, file), 'utf8').trim()).join('\n\n');
  }
  if (!standard.has(license)) throw new Error(`${name} has no licence text`);
  return `${license}: https://spdx.org/licenses/${license}.html (the package has no licence file)`;
}
