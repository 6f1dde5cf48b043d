// Small disks of a test's own: a tmpfs that `unshare` mounts where only the child sees it. Not every machine allows that.

import { spawnSync } from 'node:child_process';

/** True if `unshare` can mount a tmpfs here; else says which tests are left out. */
export function canMountTmpfs(tests: string): boolean {
  const { status } = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']);
  if (status !== 0) console.log(`skipped: ${tests}: unshare cannot mount a tmpfs here`);
  return status === 0;
}
