// Compares a committed WebAssembly file with a build of its source: the output of `npm run wasm`.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Its own types would replace those of Node's globals. */
interface Compiler {
  main(
    options: readonly string[],
    system: { writeFile(name: string, contents: Uint8Array): void },
  ): Promise<{ readonly error: Error | null }>;
}

/** True if `file` in a directory has the bytes that its `wasm/asconfig.json` makes. Rejects with the compiler's error. */
export async function isAsBuilt(dir: string, file: string): Promise<boolean> {
  const name = 'assemblyscript/asc';
  const compiler = (await import(name)) as Compiler;
  const made: Buffer[] = [];
  const { error } = await compiler.main(['--config', join(dir, 'wasm/asconfig.json')], {
    writeFile: (_, contents) => void made.push(Buffer.from(contents)),
  });
  if (error !== null) throw error;
  return made.length === 1 && made[0]?.equals(readFileSync(join(dir, file))) === true;
}
