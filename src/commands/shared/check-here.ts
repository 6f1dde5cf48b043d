// Checks the machine that a config is for, and leaves no trace: the state directory is writable, and the listen
// addresses are free.

import { accessSync, constants, existsSync, mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { ExportError, errorCodeOf } from '../../contracts/index.ts';

/** Why no state can be kept there; null: it can. */
export function checkStateDir(dir: string): ExportError | null {
  const failed = (what: string) =>
    new ExportError('state_unwritable', `${dir} cannot hold the state: ${what}`, {
      next: 'Set state.dir to a directory that the user who runs sluice may write to.',
    });
  let nearest = dir;
  while (!existsSync(nearest)) nearest = dirname(nearest);
  if (!statSync(nearest).isDirectory()) return failed(`${nearest} is no directory`);
  try {
    accessSync(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    // Access rights do not cover everything: below /proc, for example, no directory can be created.
    rmdirSync(mkdtempSync(join(nearest, '.sluice-check-')));
    return null;
  } catch (error) {
    return failed(`${nearest} cannot be written (${errorCodeOf(error)})`);
  }
}

/** Why nothing can be served there; null: it can. Port 0 is any free one. */
export async function checkListen(
  at: { readonly host: string; readonly port: number },
  key = 'status.listen',
): Promise<ExportError | null> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host: at.host, port: at.port }, resolve);
    });
    return null;
  } catch (error) {
    const code = errorCodeOf(error);
    const why = code === 'EADDRINUSE' ? 'another process listens there' : code;
    return new ExportError('config_invalid', `${at.host}:${at.port} cannot be used: ${why}`, {
      next: `Choose another address for ${key}, or stop the process that uses this one.`,
    });
  } finally {
    server.close();
  }
}
