// The verifiers of deploy/verifiers, ready to run: Python's packages and Go's program stay in the cache of the tests.

import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cached } from '../support/cache.ts';
import { type ProgramResult, runProgram } from '../support/children.ts';
import { goProgram, go as runGo } from '../support/go-program.ts';
import { tempDir } from '../support/temp.ts';

/** Where their sources are. */
export const verifiersDir: string = join(import.meta.dirname, '../../deploy/verifiers');

const packages = ['zstandard==0.25.0', 'cryptography==48.0.0'];

/** One of them. */
export interface ShortVerifier {
  readonly name: 'python' | 'go';
  readonly file: string;
  /** Runs the program as a user does, with these arguments. */
  runAlone(...args: readonly string[]): Promise<ProgramResult>;
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

/** The verifier with this source in place of its own. Rejects where it cannot be built. */
export async function verifierOf(
  of: 'verify.py' | 'verify.go',
  source: string,
): Promise<ShortVerifier['run']> {
  const dir = join(tempDir(), 'verifiers');
  cpSync(verifiersDir, dir, { recursive: true });
  writeFileSync(join(dir, of), source);
  if (of === 'verify.py') return runsPython(join(dir, of), await pythonModules());
  const program = join(dir, 'verify');
  await runGo(['-C', dir, 'build', '-trimpath', '-ldflags', '-s -w', '-o', program, '.']);
  return runsProgram(program);
}

/** The directory of Python's packages; rejects, with the reason, where pip cannot install them. */
const pythonModules = () =>
  cached('python-verifier-zstandard-0.25.0', async (dir) => {
    const install = ['-m', 'pip', 'install', '--quiet', '--target', dir, ...packages];
    const { exitCode, errors } = await runProgram('python3', install);
    if (exitCode !== 0)
      throw new Error(`python3 -m pip cannot install ${packages.join(' ')}: ${errors}`);
  });

async function python(): Promise<ShortVerifier> {
  const file = join(verifiersDir, 'verify.py');
  const modules = await pythonModules();
  return {
    ...{ name: 'python', file, run: runsPython(file, modules) },
    runAlone: (...args) => runProgram('env', [`PYTHONPATH=${modules}`, 'python3', file, ...args]),
  };
}

async function go(): Promise<ShortVerifier> {
  const program = await goProgram(verifiersDir);
  return {
    ...{ name: 'go', file: join(verifiersDir, 'verify.go'), run: runsProgram(program) },
    runAlone: (...args) => runProgram(program, args),
  };
}

const runsPython =
  (file: string, modules: string): ShortVerifier['run'] =>
  async (places, vkey) => {
    const args = [`PYTHONPATH=${modules}`, 'python3', '-c', inOneProcess, file, vkey, ...places];
    const { output, errors } = await runProgram('env', args);
    const lines = output.trimEnd().split('\n');
    if (lines.length !== places.length) throw new Error(`python3 failed: ${errors}`);
    return lines.map((line) => JSON.parse(line));
  };

const runsProgram =
  (program: string): ShortVerifier['run'] =>
  async (places, vkey) => {
    const results: ProgramResult[] = [];
    for (const place of places) results.push(await runProgram(program, [place, vkey]));
    return results;
  };

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
