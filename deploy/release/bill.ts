// The bill of materials of the one file: the packages that were joined into it, and Node. In CycloneDX 1.5
// (cyclonedx.org/docs/1.5/json) and SPDX 2.3 (spdx.github.io/spdx-spec/v2.3). Invariant: equal input gives equal bytes, so
// identifiers and times come from the commit.

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './tree.ts';

/** A part of the release. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Base64 of the SHA-512 of the package in the registry; null: not from the lockfile. */
  readonly sha512: string | null;
  /** Directory below the root of the checkout; empty: Node itself. */
  readonly directory: string;
}

/** The build that a bill describes. */
export interface BillOf {
  readonly version: string;
  readonly commit: string;
  /** Time of the commit, RFC 3339. */
  readonly time: string;
}

/** Components of these package directories, sorted by name and version. Throws if a package names no licence. */
export function componentsOf(directories: readonly string[]): readonly Component[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return directories
    .map((directory) => {
      const about = JSON.parse(readFileSync(join(root, directory, 'package.json'), 'utf8'));
      const { name, version, license } = about;
      if (typeof license !== 'string') throw new Error(`${directory} names no licence`);
      const sha512 = lock.packages[directory]?.integrity?.replace(/^sha512-/, '') ?? null;
      return { name, version, license, sha512, directory };
    })
    .toSorted((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

const purl = (one: Component) =>
  isNode(one)
    ? `pkg:generic/node@${one.version}`
    : `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`;
/** Scanners find vulnerabilities of Node by this name: it is no package of a registry. */
const cpe = ({ version }: Component) => `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`;
const isNode = ({ directory }: Component) => directory === '';
const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex');

/** CycloneDX 1.5, as JSON. */
export function cycloneDx(parts: readonly Component[], of: BillOf): string {
  const digest = hash('sha256', `cyclonedx ${of.commit}`);
  const uuid = [8, 12, 16, 20, 32]
    .map((end, i, ends) => digest.slice(ends[i - 1] ?? 0, end))
    .join('-');
  const component = (one: Component) => ({
    type: 'library',
    'bom-ref': purl(one),
    name: one.name,
    version: one.version,
    purl: purl(one),
    ...(isNode(one) && { cpe: cpe(one) }),
    licenses: [licenseOf(one.license)],
    ...(one.sha512 !== null && { hashes: [{ alg: 'SHA-512', content: hex(one.sha512) }] }),
  });
  return pretty({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${uuid}`,
    version: 1,
    metadata: {
      timestamp: of.time,
      component: { type: 'application', 'bom-ref': 'sluice', name: 'sluice', version: of.version },
    },
    components: parts.map(component),
    dependencies: [{ ref: 'sluice', dependsOn: parts.map(purl) }],
  });
}

function licenseOf(license: string) {
  return /[ ()]/.test(license) ? { expression: license } : { license: { id: license } };
}

/** SPDX 2.3, as JSON. */
export function spdx(parts: readonly Component[], of: BillOf): string {
  const id = (one: Component) => `SPDXRef-${`${one.name}-${one.version}`.replace(/[^\w.-]/g, '-')}`;
  const from = 'NOASSERTION';
  return pretty({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `sluice-${of.version}`,
    documentNamespace: `https://spdx.org/spdxdocs/sluice-${of.version}-${of.commit}`,
    creationInfo: { created: of.time, creators: ['Tool: sluice-release'] },
    packages: [
      {
        name: 'sluice',
        SPDXID: 'SPDXRef-sluice',
        versionInfo: of.version,
        downloadLocation: from,
        filesAnalyzed: false,
        licenseDeclared: 'Apache-2.0',
        licenseConcluded: from,
        copyrightText: from,
      },
      ...parts.map((one) => ({
        name: one.name,
        SPDXID: id(one),
        versionInfo: one.version,
        downloadLocation: from,
        filesAnalyzed: false,
        licenseDeclared: one.license,
        licenseConcluded: from,
        copyrightText: from,
        externalRefs: [
          {
            referenceCategory: 'PACKAGE-MANAGER',
            referenceType: 'purl',
            referenceLocator: purl(one),
          },
          ...(isNode(one)
            ? [
                {
                  referenceCategory: 'SECURITY',
                  referenceType: 'cpe23Type',
                  referenceLocator: cpe(one),
                },
              ]
            : []),
        ],
        ...(one.sha512 !== null && {
          checksums: [{ algorithm: 'SHA512', checksumValue: hex(one.sha512) }],
        }),
      })),
    ],
    relationships: [
      {
        spdxElementId: 'SPDXRef-DOCUMENT',
        relationshipType: 'DESCRIBES',
        relatedSpdxElement: 'SPDXRef-sluice',
      },
      ...parts.map((one) => ({
        spdxElementId: 'SPDXRef-sluice',
        relationshipType: 'CONTAINS',
        relatedSpdxElement: id(one),
      })),
    ],
  });
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
