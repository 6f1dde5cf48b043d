// Finds Helm, which Go builds once (minutes), and kubernetes-validate, which brings the schemas of Kubernetes from PyPI.
// The cache keeps both.
import { join } from 'node:path';
import { cached, lastLine } from './cache.ts';
import { runProgram } from './children.ts';
import { go } from './go-program.ts';

const helm = '4.3.1';
const validator = '1.37.0';

/** The program helm; rejects where it cannot be built. */
export async function findHelm(): Promise<string> {
  const dir = await cached(`helm-${helm}`, (building) =>
    go(['install', '-trimpath', '-ldflags', '-s -w', `helm.sh/helm/v4/cmd/helm@v${helm}`], {
      GOBIN: building,
    }),
  );
  return join(dir, 'helm');
}

/** What kubernetes-validate finds in a file for a version such as `1.37`; empty: nothing. Rejects where it cannot be fetched. */
export async function schemaFlaws(file: string, version: string): Promise<readonly string[]> {
  const dir = await cached(`kubernetes-validate-${validator}`, async (building) => {
    const install = ['-m', 'pip', 'install', '--quiet', '--target', building];
    const { exitCode, errors } = await runProgram('python3', [
      ...install,
      `kubernetes-validate==${validator}`,
    ]);
    if (exitCode !== 0) throw new Error(`pip: ${lastLine(errors)}`);
  });
  const args = ['-m', 'kubernetes_validate', '--strict', '-k', version, file];
  const { output, errors, exitCode } = await runProgram('env', [
    `PYTHONPATH=${dir}`,
    'python3',
    ...args,
  ]);
  const lines = `${output}${errors}`.split('\n').filter((line) => line !== '');
  const passed = lines.filter((line) => line.startsWith('INFO') && line.includes(' passed '));
  if (passed.length === 0) throw new Error(`nothing was validated: ${lines.join('\n')}`);
  // The operator of Prometheus defines these kinds; Kubernetes has no schema for them.
  const known = /WARN .*kind (ServiceMonitor|PrometheusRule) /;
  const flaws = lines.filter((line) => !passed.includes(line) && !known.test(line));
  return exitCode === 0 || flaws.length > 0 ? flaws : [`ended with ${exitCode}`];
}
