// The base of the image: shared libraries and certificates of Debian packages, which image-packages.json pins, and the
// few files that the C library reads. No shell, no package manager, no other program.

import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { debsOf, output, type Platform } from './machine.ts';
import type { TarEntry } from './tar.ts';

/** User and group of the image. */
export const imageUser = 65_532;

/**
 * Shared libraries, their licences, and the name of the distribution, which scanners read. Debian's debugging aids
 * (libmemusage, libpcprofile) and character sets stay out. Packages of one source share the licences of their `-base`
 * by a link, which this follows.
 */
const used =
  /^(usr\/)?lib(64|\/[^/]+-linux-gnu)?\/(ld-linux-|lib(atomic|c|dl|gcc_s|m|mvec|nss_dns|nss_files|pthread|resolv|rt|stdc\+\+)\.so)[^/]*$|^usr\/share\/doc\/[^/]+\/copyright$|^usr\/share\/common-licenses\/|^(etc|usr\/lib)\/os-release$/;

/** The files of the base, sorted by path, with their directories. Throws if a package is not fetched. */
export function baseFiles(platform: Platform): readonly TarEntry[] {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-base-'));
  try {
    const facts = debsOf(platform).map((deb) => {
      output('dpkg-deb', ['--extract', deb, dir]);
      return [output('dpkg-deb', ['--field', deb, 'Package']).trim(), control(deb)] as const;
    });
    const found = readdirSync(dir, { recursive: true, withFileTypes: true }).flatMap(
      (file): readonly TarEntry[] => {
        const path = join(file.parentPath, file.name).slice(dir.length + 1);
        if (file.isDirectory() || !used.test(path)) return [];
        if (file.isSymbolicLink())
          return [{ path, mode: 0o777, link: readlinkSync(join(dir, path)) }];
        const mode = path.includes('ld-linux-') ? 0o755 : 0o644;
        return [{ path, mode, bytes: readFileSync(join(dir, path)) }];
      },
    );
    const files: readonly TarEntry[] = [
      ...found,
      // Scanners of images read the installed packages here.
      ...facts.map(([name, text]) => textFile(`var/lib/dpkg/status.d/${name}`, text)),
      textFile('etc/ssl/certs/ca-certificates.crt', certificates(dir)),
      textFile('etc/passwd', passwd),
      textFile('etc/group', `root:x:0:\nsluice:x:${imageUser}:\n`),
      textFile('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    ];
    const directories: readonly TarEntry[] = [
      { path: 'tmp', mode: 0o1777 },
      { path: 'etc/sluice', mode: 0o755 },
      { path: 'var/lib/sluice', mode: 0o700, owner: imageUser },
    ];
    return withParents([...files, ...directories]);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const passwd = `root:x:0:0:root:/:/sbin/nologin
sluice:x:${imageUser}:${imageUser}:sluice:/var/lib/sluice:/sbin/nologin
`;

function textFile(path: string, content: string): TarEntry {
  return { path, mode: 0o644, bytes: Buffer.from(content) };
}

function control(deb: string): string {
  return output('dpkg-deb', ['--field', deb]);
}

/** The certificates in one file, as update-ca-certificates writes it. */
function certificates(dir: string): string {
  const from = join(dir, 'usr/share/ca-certificates/mozilla');
  return readdirSync(from)
    .toSorted()
    .map((name) => `${readFileSync(join(from, name), 'utf8').trim()}\n`)
    .join('');
}

/** Adds the directories above each entry; a directory comes before its files. */
export function withParents(entries: readonly TarEntry[]): readonly TarEntry[] {
  const all = new Map<string, TarEntry>();
  for (const { path } of entries) {
    const parts = path.split('/').slice(0, -1);
    parts.forEach((_, i) => {
      const above = parts.slice(0, i + 1).join('/');
      all.set(above, { path: above, mode: 0o755 });
    });
  }
  for (const entry of entries) all.set(entry.path, entry);
  return [...all.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
