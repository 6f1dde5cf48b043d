// Finds a server that speaks S3 for the tests: versitygw, which Go builds once (some minutes, and longer on a busy machine)
// and the cache keeps; where Go is missing moto, from PyPI, which checks neither signatures nor checksums.
import { join } from 'node:path';
import { cached, lastLine } from './cache.ts';
import { runProgram } from './children.ts';

/** How to start the server. */
export interface S3Program {
  readonly name: 'versitygw' | 'moto';
  /** versitygw: the program; moto: the directory that Python finds it in. */
  readonly path: string;
}

const versitygw = '1.8.0';
const moto = '5.2.5';
const hint =
  'The tests of S3 run a real server: install Go, so that versitygw can be built, or Python with pip for moto.';

/** The program that will be found, as far as that is known at once. */
export async function s3ServerName(): Promise<S3Program['name']> {
  return (await runProgram('go', ['version'])).exitCode === 0 ? 'versitygw' : 'moto';
}

/** Looks in the cache, then builds or downloads; rejects with what to do. */
export async function findS3(): Promise<S3Program> {
  const name = await s3ServerName();
  if (name === 'moto') {
    const path = await cached(`moto-${moto}`, async (dir) => {
      const requested = ['--quiet', '--target', dir, `moto[server,s3]==${moto}`];
      await done(runProgram('python3', ['-m', 'pip', 'install', ...requested]));
    });
    return { name, path };
  }
  const dir = await cached(`versitygw-${versitygw}`, async (building) => {
    const requested = `github.com/versity/versitygw/cmd/versitygw@v${versitygw}`;
    const build = ['go', 'install', '-trimpath', '-ldflags', '-s -w', requested];
    await done(runProgram('nice', ['env', 'CGO_ENABLED=0', `GOBIN=${building}`, ...build]));
  });
  return { name, path: join(dir, 'versitygw') };
}

async function done(work: ReturnType<typeof runProgram>): Promise<void> {
  const { exitCode, errors } = await work;
  if (exitCode !== 0) throw new Error(`${lastLine(errors)}. ${hint}`);
}
