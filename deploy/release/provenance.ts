// How a release was built, as an in-toto statement with SLSA provenance (slsa.dev/spec/v1.0/provenance). The signature of
// SHA256SUMS covers it. A build by one's own command is SLSA build level 1.

import type { BillOf } from './bill.ts';

/** The statement as JSON; `sums` are names and hexadecimal SHA-256 of the files that it is about. */
export function provenance(
  sums: readonly (readonly [string, string])[],
  { version, commit, time }: BillOf,
): string {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: sums.map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'npm run release',
        externalParameters: { version },
        internalParameters: { node: process.version },
        resolvedDependencies: [{ name: 'source', digest: { gitCommit: commit } }],
      },
      runDetails: {
        builder: { id: 'npm run release' },
        metadata: { startedOn: time, finishedOn: time },
      },
    },
  };
  return `${JSON.stringify(statement, null, 2)}\n`;
}
