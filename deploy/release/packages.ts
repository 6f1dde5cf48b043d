// deb and rpm: the one file, a systemd unit, a user, directories, a man page and completion. nfpm writes them; times come
// from the commit, so that two builds are equal.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { nfpm, output, type Platform } from './machine.ts';
import { root } from './tree.ts';

/** Parts of a package that do not depend on its kind. */
export interface PackageParts {
  readonly platform: Platform;
  readonly version: string;
  /** Time of the commit, RFC 3339. */
  readonly time: string;
  /** The executable. */
  readonly executable: string;
  /** An executable that runs on this machine, for the texts that the program writes. */
  readonly runnable: string;
  readonly notices: string;
  /** An empty directory. */
  readonly work: string;
}

const architectures = { x64: 'amd64', arm64: 'arm64' };
const shells = {
  bash: '/usr/share/bash-completion/completions/sluice',
  zsh: '/usr/share/zsh/vendor-completions/_sluice',
  fish: '/usr/share/fish/vendor_completions.d/sluice.fish',
};

/** Settings of the unit with the value of a checkout, by what a package has instead. Comments above a setting go with it. */
const unitChanges: readonly (readonly [string, string])[] = [
  ['Documentation=file:/opt/sluice/docs/README.md', 'Documentation=man:sluice(1)'],
  ['ExecStart=/opt/sluice/src/boot/sluice.js run', 'ExecStart=/usr/bin/sluice run'],
  [
    'Environment=PATH=/opt/sluice/node_modules/.bin:/usr/bin:/bin',
    `# Memory that threads free in one arena serves the next page.
Environment=MALLOC_ARENA_MAX=1
# Compiled code, for a faster start.
CacheDirectory=sluice
Environment=NODE_COMPILE_CACHE=%C/sluice`,
  ],
];

/** The unit of a package: deploy/systemd/sluice.service with the paths of a package. Throws if a setting is missing there. */
export function packageUnit(): string {
  const unit = readFileSync(join(root, 'deploy/systemd/sluice.service'), 'utf8');
  return unitChanges.reduce(
    (text, [from, to]) => {
      const setting = new RegExp(`^(?:#.*\\n)*${RegExp.escape(from)}`, 'm');
      if (!setting.test(text)) throw new Error(`deploy/systemd/sluice.service has no ${from}`);
      return text.replace(setting, to);
    },
    unit.replace(/^(?:#.*\n)+/, ''),
  );
}

const scripts = {
  // dpkg passes words and rpm passes numbers; both run this after an installation and an upgrade.
  postinstall: `#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers sluice.conf
elif ! getent passwd sluice >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/sluice --shell /usr/sbin/nologin sluice
fi
install -d -o sluice -g sluice -m 0700 /var/lib/sluice
# An administrator may have deleted the config.
for path in /etc/sluice /etc/sluice/sluice.yaml; do
  if [ -e "$path" ]; then chgrp sluice "$path"; fi
done
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart sluice.service
fi
`,
  preremove: `#!/bin/sh
set -e
case "$1" in
  remove | 0) if [ -d /run/systemd/system ]; then systemctl disable --now sluice.service; fi ;;
esac
`,
  // Only dpkg has a purge. The state stays when the package is removed.
  postremove: `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
case "$1" in
  purge)
    rm -rf /var/cache/sluice /etc/sluice
    # A mount point is emptied and stays.
    rm -rf /var/lib/sluice || true
    ;;
esac
`,
};

// Never changed: else dpkg stops each upgrade with a question, since everyone edits this file.
const config = `# The config of sluice. These commands write one and start the service:
#   sluice init --force -c /etc/sluice/sluice.yaml --secrets /etc/sluice/secrets
#   systemctl enable --now sluice
# Set state.dir to /var/lib/sluice/state, so that commands in a shell find the state too.
# Keys: sluice schema
`;

/** Writes the deb and the rpm into a directory, or only these kinds. Throws with nfpm's errors. */
export function writePackages(
  parts: PackageParts,
  to: string,
  kinds: readonly ('deb' | 'rpm')[] = ['deb', 'rpm'],
): void {
  const { work, version, time } = parts;
  mkdirSync(work, { recursive: true });
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(work, name), content);
    return join(work, name);
  };
  copyFileSync(join(root, 'LICENSE'), join(work, 'LICENSE'));
  const entry = (src: string, dst: string, mode = 0o644, more: object = {}) => ({
    ...{ src, dst, ...more },
    file_info: { mode, mtime: time },
  });
  const directory = (dst: string, mode: number) => ({
    dst,
    type: 'dir',
    file_info: { mode, mtime: time },
  });
  const about = {
    name: 'sluice',
    arch: architectures[parts.platform],
    platform: 'linux',
    version,
    section: 'admin',
    maintainer: 'The sluice maintainers <maintainers@sluice.invalid>',
    description: 'Exports audit events, security logs and firewall changes, losing nothing.',
    license: 'Apache-2.0',
    mtime: time,
    contents: [
      entry(parts.executable, '/usr/bin/sluice', 0o755),
      entry(file('sluice.service', packageUnit()), '/usr/lib/systemd/system/sluice.service'),
      entry(join(root, 'deploy/systemd/sluice.sysusers'), '/usr/lib/sysusers.d/sluice.conf'),
      directory('/etc/sluice', 0o750),
      entry(file('sluice.yaml', config), '/etc/sluice/sluice.yaml', 0o640, {
        type: 'config|noreplace',
      }),
      entry(file('sluice.1.gz', gzipSync(manPage(parts))), '/usr/share/man/man1/sluice.1.gz'),
      ...Object.entries(shells).map(([shell, path]) =>
        entry(file(`completion.${shell}`, output(parts.runnable, ['completion', shell])), path),
      ),
      entry(join(work, 'LICENSE'), '/usr/share/doc/sluice/copyright'),
      entry(file('NOTICES', parts.notices), '/usr/share/doc/sluice/THIRD-PARTY-NOTICES'),
    ],
    scripts: Object.fromEntries(
      Object.entries(scripts).map(([name, text]) => [name, file(`${name}.sh`, text)]),
    ),
    overrides: {
      // useradd is in passwd, which a small container may lack; distributions with rpm name its package differently.
      deb: { depends: ['libc6 (>= 2.28)', 'libstdc++6', 'libgcc-s1', 'libatomic1', 'passwd'] },
      rpm: {
        depends: ['glibc >= 2.28', 'libstdc++', 'libgcc', 'libatomic', '/usr/sbin/useradd'],
      },
    },
    deb: { compression: 'zstd' },
    rpm: { compression: 'zstd', buildhost: 'sluice' },
  };
  const settings = file('nfpm.yaml', stringify(about));
  const seconds = String(Math.floor(Date.parse(time) / 1_000));
  for (const packager of kinds) {
    const args = ['package', '--config', settings, '--packager', packager, '--target', to];
    output('env', [`SOURCE_DATE_EPOCH=${seconds}`, nfpm(), ...args]);
  }
}

/** The man page, from the program's own help. */
function manPage({ runnable, version, time }: PackageParts): string {
  const help = output(runnable, ['--help']);
  const [, commands = ''] = help.split(/^Commands:\n/m);
  const escaped = (text: string) =>
    text
      .replaceAll('\\', '\\e')
      .replaceAll('-', '\\-')
      .replace(/^([.'])/gm, '\\&$1');
  return `.TH SLUICE 1 "${time.slice(0, 10)}" "sluice ${version}"
.SH NAME
sluice \\- export audit events, security logs and configuration changes
.SH SYNOPSIS
.B sluice
.I command
[\\fIoptions\\fR]
.SH DESCRIPTION
sluice reads the APIs of a network\\-security platform with checkpoints and delivers events to Kafka, SIEMs and archives.
Each command has its own help: \\fBsluice\\fR \\fIcommand\\fR \\fB\\-\\-help\\fR.
.SH COMMANDS
.nf
${escaped(commands.trimEnd())}
.fi
.SH FILES
.TP
/etc/sluice/sluice.yaml
the config of the service
.TP
/var/lib/sluice
the state: checkpoints and stored events
.SH EXIT STATUS
0: done. 1: failed. 2: the config has errors. 3: something is unreachable or refuses. 64: the command line is wrong.
`;
}
