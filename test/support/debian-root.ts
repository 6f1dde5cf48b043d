// A root directory of Debian with the essential packages and those that sluice's deb needs, as an archive that the cache
// keeps. mmdebstrap makes it, from the mirror of this machine.
import { join } from 'node:path';
import { cached, lastLine, needCommands } from './cache.ts';
import { runProgram } from './children.ts';

const packages = 'libatomic1,libstdc++6,libgcc-s1,passwd';

/** Path of the tar archive; rejects where it cannot be made. */
export async function debianRoot(): Promise<string> {
  const dir = await cached('debian-root-bookworm-passwd', async (building) => {
    const hint = 'The test of the deb makes a root directory of Debian: install mmdebstrap.';
    await needCommands(['mmdebstrap'], ['mmdebstrap'], hint);
    const to = join(building, 'root.tar');
    const args = ['--variant=essential', `--include=${packages}`, 'bookworm', to];
    const { exitCode, errors } = await runProgram('nice', ['mmdebstrap', ...args]);
    if (exitCode !== 0) throw new Error(`mmdebstrap: ${lastLine(errors)}. ${hint}`);
  });
  return join(dir, 'root.tar');
}
