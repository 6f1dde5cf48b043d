// The container image of a platform as one archive: an OCI image layout (github.com/opencontainers/image-spec), with the
// manifest.json of `docker save` beside it, so that docker, podman, skopeo and containerd load it. No engine is needed.
// Two layers: the base, which changes seldom, and the one file. Invariant: equal input gives equal bytes.

import { hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { baseFiles, imageUser, withParents } from './base.ts';
import type { BillOf } from './bill.ts';
import type { Platform } from './machine.ts';
import { type TarEntry, tar } from './tar.ts';

const architectures = { x64: 'amd64', arm64: 'arm64' };

/** The config of the container, as the Dockerfile has it for a checkout. */
function containerConfig({ version, commit, time }: BillOf) {
  const seconds = 1_000_000_000;
  const config = '/etc/sluice/sluice.yaml';
  return {
    User: `${imageUser}:${imageUser}`,
    Env: [
      'PATH=/usr/bin',
      'NODE_ENV=production',
      'STATE_DIRECTORY=/var/lib/sluice',
      'MALLOC_ARENA_MAX=1',
      // Not beside the state, where HOME is.
      'XDG_CACHE_HOME=/tmp',
    ],
    Entrypoint: ['/usr/bin/sluice'],
    Cmd: ['run', '-c', config],
    WorkingDir: '/var/lib/sluice',
    Volumes: { '/var/lib/sluice': {} },
    // Part of Docker's image format; OCI ignores it.
    Healthcheck: {
      Test: ['CMD', '/usr/bin/sluice', 'healthy', '-c', config],
      Interval: 30 * seconds,
      Timeout: 10 * seconds,
      StartPeriod: 60 * seconds,
    },
    Labels: {
      'org.opencontainers.image.title': 'sluice',
      'org.opencontainers.image.description':
        'Exports audit events, security logs and firewall changes, losing nothing.',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.revision': commit,
      'org.opencontainers.image.created': time,
    },
  };
}

/** The archive of an image from the bytes of the one file. Throws if a package of the base is not fetched. */
export function image(
  platform: Platform,
  executable: Uint8Array,
  parts: BillOf & { readonly license: string; readonly notices: string },
): Buffer {
  const seconds = Math.floor(Date.parse(parts.time) / 1_000);
  const program = withParents([
    { path: 'usr/bin/sluice', mode: 0o755, bytes: executable },
    { path: 'usr/share/doc/sluice/copyright', mode: 0o644, bytes: Buffer.from(parts.license) },
    {
      path: 'usr/share/doc/sluice/THIRD-PARTY-NOTICES',
      mode: 0o644,
      bytes: Buffer.from(parts.notices),
    },
  ]);
  const layers = [baseFiles(platform), program].map((entries) => {
    const text = tar(entries, seconds);
    return { diffId: digest(text), bytes: gzipSync(text) };
  });
  const config = json({
    created: parts.time,
    architecture: architectures[platform],
    os: 'linux',
    ...(platform === 'arm64' && { variant: 'v8' }),
    config: containerConfig(parts),
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: ['base', 'sluice'].map((name) => ({ created: parts.time, created_by: name })),
  });
  const media = 'application/vnd.oci.image';
  const manifest = json({
    schemaVersion: 2,
    mediaType: `${media}.manifest.v1+json`,
    config: described(config, `${media}.config.v1+json`),
    layers: layers.map(({ bytes }) => described(bytes, `${media}.layer.v1.tar+gzip`)),
  });
  const reference = `sluice:${parts.version}`;
  const index = json({
    schemaVersion: 2,
    mediaType: `${media}.index.v1+json`,
    manifests: [
      {
        ...described(manifest, `${media}.manifest.v1+json`),
        platform: { architecture: architectures[platform], os: 'linux' },
        annotations: {
          'org.opencontainers.image.ref.name': parts.version,
          'io.containerd.image.name': `docker.io/library/${reference}`,
        },
      },
    ],
  });
  const blobs = [config, manifest, ...layers.map(({ bytes }) => bytes)];
  const dockerManifest = json([
    {
      Config: blobPath(config),
      RepoTags: [reference],
      Layers: layers.map(({ bytes }) => blobPath(bytes)),
    },
  ]);
  const file = (path: string, bytes: Uint8Array): TarEntry => ({ path, mode: 0o644, bytes });
  return tar(
    withParents([
      file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
      file('index.json', index),
      file('manifest.json', dockerManifest),
      ...blobs.map((bytes) => file(blobPath(bytes), bytes)),
    ]),
    seconds,
  );
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function digest(bytes: Uint8Array): string {
  return `sha256:${hash('sha256', bytes)}`;
}

function blobPath(bytes: Uint8Array): string {
  return `blobs/${digest(bytes).replace(':', '/')}`;
}

function described(bytes: Uint8Array, mediaType: string) {
  return { mediaType, digest: digest(bytes), size: bytes.length };
}
