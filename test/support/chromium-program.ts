// Finds Chromium, the browser that the status page is looked at with. If the system has it, that one is used. If not, Debian's
// packages are downloaded and unpacked into the cache, not installed: neither root nor a desktop matters, and nothing
// outside the cache changes.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cached, lastLine } from './cache.ts';
import { runProgram } from './children.ts';

/** How to start Chromium. */
export interface ChromiumProgram {
  readonly command: string;
  /** Where its shared libraries are, for LD_LIBRARY_PATH; empty where the system's are enough. */
  readonly libraryDirs: string;
}

const hint =
  'The tests of the status page run a real Chromium: install it (Debian: apt-get install chromium), ' +
  'or give this machine access to a Debian mirror.';

/** Looks on the system first, then in the cache, then at Debian; rejects with what to do. */
export async function findChromium(): Promise<ChromiumProgram> {
  const found = await runProgram('sh', ['-c', 'command -v chromium']);
  if (found.exitCode === 0) return { command: found.output.trim(), libraryDirs: '' };
  const root = await cached('chromium', fetchPackages);
  const command = join(root, 'usr/lib/chromium/chromium');
  if (!existsSync(command)) throw new Error(`${command} is missing. ${hint}`);
  return { command, libraryDirs: libraryDirsUnder(root) };
}

function libraryDirsUnder(root: string): string {
  const lib = join(root, 'usr/lib');
  const triplets = readdirSync(lib).filter((name) => name.includes('-linux-'));
  const dirs = triplets.map((name) => join(lib, name));
  // Some packages keep their libraries one level deeper, e.g. pulseaudio.
  const deeper = dirs.flatMap((dir) =>
    readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(dir, entry.name)),
  );
  return [...dirs, ...deeper].join(':');
}

async function fetchPackages(dir: string): Promise<void> {
  const archives = join(dir, 'archives');
  mkdirSync(join(archives, 'partial'), { recursive: true });
  const complaint = await download(archives);
  const packages = readdirSync(archives).filter((name) => name.endsWith('.deb'));
  if (packages.length === 0) {
    throw new Error(`downloading chromium from Debian failed: ${lastLine(complaint)}. ${hint}`);
  }
  for (const name of packages) {
    const unpacked = await runProgram('dpkg-deb', ['-x', join(archives, name), dir]);
    if (unpacked.exitCode !== 0) {
      throw new Error(`unpacking ${name} failed: ${lastLine(unpacked.errors)}. ${hint}`);
    }
  }
  rmSync(archives, { recursive: true });
}

/** Fetches exactly what this system lacks; tried again with fresh lists of packages. Resolves to apt's last complaint. */
async function download(archives: string): Promise<string> {
  const once = () =>
    runProgram('apt-get', [
      ...['-o', `Dir::Cache::archives=${archives}`, '-o', 'Debug::NoLocking=1'],
      // apt's own download user cannot write into the cache.
      ...['-o', `APT::Sandbox::User=${process.env.USER ?? 'root'}`],
      ...['install', '-y', '--download-only', '--no-install-recommends', 'chromium'],
    ]);
  const first = await once();
  if (first.exitCode === 0) return '';
  await runProgram('apt-get', ['update']);
  const second = await once();
  return second.exitCode === 0 ? '' : second.errors;
}
