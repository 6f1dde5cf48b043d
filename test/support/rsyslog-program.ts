// Finds rsyslogd, the syslog server that most sites run, for use as a receiver in tests. If the system
// has it with TLS, RELP and CEF decoding, that one is used. If not, Debian's packages are downloaded and
// unpacked into the cache, not installed: no service starts, nothing outside the cache changes,
// and neither root nor a clash with another syslog package matters.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { cached, lastLine } from './cache.ts';
import { runProgram } from './children.ts';

/** How to start rsyslogd. */
export interface RsyslogProgram {
  readonly command: string;
  /** Where its modules are, as `rsyslogd -M` takes it: directories joined by colons. */
  readonly moduleDirs: string;
  /** Where its shared libraries are, for LD_LIBRARY_PATH. */
  readonly libraryDirs: string;
}

const neededModules = [
  'imrelp.so',
  'imtcp.so',
  'imudp.so',
  'lmnsd_ossl.so',
  'mmnormalize.so',
  'mmpstrucdata.so',
];
const hint =
  'The syslog tests run a real rsyslogd: install it with TLS, RELP and CEF support ' +
  '(Debian: apt-get install rsyslog rsyslog-openssl rsyslog-relp), or give this machine access to a Debian mirror.';

/** Looks on the system first, then in the cache, then at Debian; rejects with what to do. */
export async function findRsyslog(): Promise<RsyslogProgram> {
  const installed = programUnder(['/']);
  if (installed !== undefined) return installed;
  const unpacked = await cached('rsyslog-relp', fetchPackages);
  const fetched = programUnder([unpacked, '/']);
  if (fetched !== undefined) return fetched;
  throw new Error(`rsyslogd or one of ${neededModules.join(', ')} is missing. ${hint}`);
}

// A partly installed rsyslog is completed from the download, hence more than one root.
function programUnder(roots: readonly string[]): RsyslogProgram | undefined {
  const command = roots
    .flatMap((root) => [join(root, 'usr/sbin/rsyslogd'), join(root, 'sbin/rsyslogd')])
    .find((path) => existsSync(path));
  const libraryDirs = roots.flatMap((root) => [join(root, 'usr/lib64'), ...tripletDirs(root)]);
  const moduleDirs = libraryDirs
    .map((dir) => join(dir, 'rsyslog'))
    .filter((dir) => existsSync(dir));
  const complete = neededModules.every((module) =>
    moduleDirs.some((dir) => existsSync(join(dir, module))),
  );
  if (command === undefined || !complete) return undefined;
  return { command, moduleDirs: moduleDirs.join(':'), libraryDirs: libraryDirs.join(':') };
}

function tripletDirs(root: string): readonly string[] {
  const lib = join(root, 'usr/lib');
  if (!existsSync(lib)) return [];
  return readdirSync(lib)
    .filter((name) => name.includes('-linux-'))
    .map((name) => join(lib, name));
}

async function fetchPackages(dir: string): Promise<void> {
  const archives = join(dir, 'archives');
  mkdirSync(join(archives, 'partial'), { recursive: true });
  const download = await downloadPackages(archives);
  const packages = readdirSync(archives).filter((name) => name.endsWith('.deb'));
  if (packages.length === 0) {
    throw new Error(`downloading rsyslog from Debian failed: ${lastLine(download)}. ${hint}`);
  }
  for (const name of packages) {
    const unpacked = await runProgram('dpkg-deb', ['-x', join(archives, name), dir]);
    if (unpacked.exitCode !== 0) {
      throw new Error(`unpacking ${name} failed: ${lastLine(unpacked.errors)}. ${hint}`);
    }
  }
}

// `install --download-only` fetches exactly the packages that this system lacks. The lists of packages
// may be absent or too old, so it is tried again with fresh ones. Resolves to apt's last complaint.
async function downloadPackages(archives: string): Promise<string> {
  const options = ['-o', `Dir::Cache::archives=${archives}`, '-o', 'Debug::NoLocking=1'];
  const requested = ['install', '-y', '--download-only', '--no-install-recommends'];
  const download = () =>
    runProgram('apt-get', [
      ...options,
      // apt's own download user cannot write into the cache.
      ...['-o', `APT::Sandbox::User=${process.env.USER ?? 'root'}`],
      ...requested,
      'rsyslog',
      'rsyslog-openssl',
      'rsyslog-relp',
    ]);
  const first = await download();
  if (first.exitCode === 0) return '';
  await runProgram('apt-get', ['update']);
  const second = await download();
  return second.exitCode === 0 ? '' : second.errors;
}
