// The verifiers of deploy/verifiers, ready to run: Python's packages and Go's program stay in the cache of the tests.

import { join } from 'node:path';
import { cached } from '../support/cache.ts';
import { type ProgramResult, runProgram } from '../support/children.ts';
import { goProgram } from '../support/go-program.ts';

/** Where their sources are. */
export const verifiersDir: string = join(import.meta.dirname, '../../deploy/verifiers');

const packages = ['zstandard==0.25.0', 'cryptography==48.0.0'];

/** One of them. */
export interface ShortVerifier {
  readonly name: 'python' | 'go';
  readonly file: string;
  /** Judges the archives in these directories, one after the other. */
  run(places: readonly string[], vkey: string): Promise<readonly ProgramResult[]>;
}

/** Those that can run on this machine; says which cannot, and why. */
export async function shortVerifiers(): Promise<readonly ShortVerifier[]> {
  const found: ShortVerifier[] = [];
  for (const build of [python, go]) {
    try {
      found.push(await build());
    } catch (error) {
      process.stderr.write(`a verifier of deploy/verifiers is not tested: ${error}\n`);
    }
  }
  return found;
}

async function python(): Promise<ShortVerifier> {
  const modules = await cached('python-verifier-zstandard-0.25.0', async (dir) => {
    const install = ['-m', 'pip', 'install', '--quiet', '--target', dir, ...packages];
    const { exitCode, errors } = await runProgram('python3', install);
    if (exitCode !== 0) throw new Error(`pip failed: ${errors}`);
  });
  const file = join(verifiersDir, 'verify.py');
  const args = ['env', `PYTHONPATH=${modules}`, 'python3', '-c', inOneProcess, file] as const;
  const [command, ...rest] = args;
  return {
    name: 'python',
    file,
    async run(places, vkey) {
      const { output, errors } = await runProgram(command, [...rest, vkey, ...places]);
      const lines = output.trimEnd().split('\n');
      if (lines.length !== places.length) throw new Error(`python3 failed: ${errors}`);
      return lines.map((line) => JSON.parse(line));
    },
  };
}

async function go(): Promise<ShortVerifier> {
  const program = await goProgram(verifiersDir);
  return {
    name: 'go',
    file: join(verifiersDir, 'verify.go'),
    async run(places, vkey) {
      const results: ProgramResult[] = [];
      for (const place of places) results.push(await runProgram(program, [place, vkey]));
      return results;
    },
  };
}

/** Runs the program as it is for each directory; starting Python for each would take most of the time. */
const inOneProcess = `
import contextlib, io, json, runpy, sys, traceback
file, vkey, *places = sys.argv[1:]
for place in places:
    sys.argv, output, errors, code = [file, place, vkey], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            runpy.run_path(file, run_name="__main__")
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
            errors.write("" if isinstance(error.code, int) else f"{error.code}")
        except BaseException:
            code = 1
            traceback.print_exc()
    print(json.dumps({"output": output.getvalue(), "errors": errors.getvalue(), "exitCode": code}))
`;
