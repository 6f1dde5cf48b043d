// deploy/kubernetes against the checkout. There is no cluster here: what one would find out only when it runs is looked up.
// Field names and types were checked once against the published schemas; here is what has to fit together.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/config.ts';
import { configEnv } from '../config/config-text.ts';
import { aMoment, aServer, ask } from '../watch/a-moment.ts';
import { unknownIn } from './command-line.ts';

const folder = join(import.meta.dirname, '..', '..', 'deploy', 'kubernetes');
const manifest = (name: string) => parse(readFileSync(join(folder, name), 'utf8'));
const kustomization = manifest('kustomization.yaml');
const service = manifest('service.yaml');
const { spec, metadata } = manifest('statefulset.yaml');
const pod = spec.template.spec;
const [container] = pod.containers;

const secrets = ['client_id', 'client_secret', 'status_token'];
const config = parseConfig(
  readFileSync(join(folder, 'sluice.yaml'), 'utf8'),
  'sluice.yaml',
  configEnv({}, Object.fromEntries(secrets.map((name) => [`/run/secrets/sluice/${name}`, 's']))),
);

test('the kustomization names files that are there', () => {
  const files = [...kustomization.resources, ...kustomization.configMapGenerator[0].files];

  expect(files.filter((file: string) => !existsSync(join(folder, file)))).toEqual([]);
  expect(kustomization.images[0].name).toBe(container.image);
});

const kubectl = spawnSync('kubectl', ['version', '--client']);
test.skipIf(kubectl.status !== 0)(
  'kubectl builds it, the config in a map whose name follows its content (skipped where there is no kubectl)',
  () => {
    const { stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });

    expect(stderr).toBe('');
    expect(stdout).toMatch(/^ {2}name: sluice-config-[a-z0-9]+$/m);
    expect(stdout).toMatch(/configMap:\s+name: sluice-config-[a-z0-9]+$/m);
    expect(stdout).toContain('image: registry.example/sluice:');
  },
);

test('one pod, which the service leads to also while it is not ready', () => {
  expect(spec.replicas).toBe(1);
  expect(spec.serviceName).toBe(service.metadata.name);
  expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
  expect(service.spec.selector).toEqual(spec.template.metadata.labels);
  expect(metadata.labels).toEqual(service.metadata.labels);
  expect(service.spec.publishNotReadyAddresses).toBe(true);
});

test('the pod has no rights, and writes nowhere but on its volumes', () => {
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: 65532,
    fsGroup: 65532,
  });
  expect(pod.automountServiceAccountToken).toBe(false);
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test('the program knows the command line, and the mounts provide the files that it names', () => {
  const mounts = new Map(container.volumeMounts.map((m: Mount) => [m.name, m.mountPath]));
  const volumes = [...pod.volumes, ...spec.volumeClaimTemplates.map((c: Claim) => c.metadata)];

  expect(unknownIn(container.args)).toEqual([]);
  expect(container.args.at(-1)).toBe(`${mounts.get('config')}/sluice.yaml`);
  expect([...mounts.keys()].toSorted()).toEqual(volumes.map(({ name }) => name).toSorted());
  expect(config.state.dir).toBe(`${mounts.get('state')}/state`);
  expect(mounts.get('secrets')).toBe('/run/secrets/sluice');
  expect(pod.volumes.find((v: { name: string }) => v.name === 'secrets').secret.defaultMode).toBe(
    0o440,
  );
});

interface Mount {
  readonly name: string;
  readonly mountPath: string;
}
interface Claim {
  readonly metadata: { readonly name: string };
}

test('the config passes, and its status is where the probes look', () => {
  const port = container.ports.find(({ name }: { name: string }) => name === 'status');

  expect(config.notices).toEqual([]);
  expect(config.status).toMatchObject({ host: '0.0.0.0', port: port.containerPort });
  expect(config.status?.token).not.toBeNull();
  expect(service.spec.ports).toEqual([{ name: 'status', port: 8686, targetPort: 'status' }]);
});

test('the policy is the pod’s, allows reading its status, and allows the connections that its config needs', () => {
  const { spec: policy } = manifest('networkpolicy.yaml');
  const letThrough = (rules: { ports: { port: string | number }[] }[]) =>
    rules.flatMap(({ ports }) => ports.map(({ port }) => port));

  expect(policy.podSelector).toEqual(spec.selector);
  expect(policy.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(letThrough(policy.ingress)).toEqual([container.ports[0].name]);
  const named = [
    ...readFileSync(join(folder, 'sluice.yaml'), 'utf8').matchAll(/(\w+):\/\/[^/"\s]+/g),
  ];
  const ports = named.map(([url]) => Number(new URL(url).port || 443));
  expect(ports).toEqual([443, 6514]);
  expect(letThrough(policy.egress)).toEqual(expect.arrayContaining([53, ...ports]));
});

test('the pod has more time to end than sluice takes to drain', () => {
  expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(config.shutdown.timeoutMs);
});

test('with the state in Kafka: three pods, each under its own name, of which one may go at a time', () => {
  const there = (name: string) =>
    readFileSync(join(folder, '..', 'kubernetes-kafka', name), 'utf8');
  const { spec: changed, metadata: of } = parse(there('statefulset.yaml'));
  const { spec: budget } = parse(there('poddisruptionbudget.yaml'));
  const { resources, configMapGenerator, patches } = parse(there('kustomization.yaml'));
  const [{ name, env }] = changed.template.spec.containers;
  const files = [...secrets, 'kafka_password'].map(
    (secret) => [`/run/secrets/sluice/${secret}`, 's'] as const,
  );
  const surroundings = configEnv({ [env[0].name]: 'sluice-2' }, Object.fromEntries(files));
  const clustered = parseConfig(there('sluice.yaml'), 'sluice.yaml', surroundings);

  expect([of.name, name]).toEqual([metadata.name, container.name]);
  expect(changed.replicas).toBe(3);
  expect(env[0].valueFrom).toEqual({ fieldRef: { fieldPath: 'metadata.name' } });
  expect(clustered.notices).toEqual([]);
  expect(clustered.state.kafka).toMatchObject({ instance: 'sluice-2', replicationFactor: 3 });
  expect(clustered.status).toEqual(config.status);
  expect(budget).toEqual({ maxUnavailable: 1, selector: spec.selector });
  for (const file of [...resources, ...configMapGenerator[0].files, patches[0].path]) {
    expect(existsSync(join(folder, '..', 'kubernetes-kafka', file)), file).toBe(true);
  }
  const { spec: policy } = manifest('networkpolicy.yaml');
  const ports = policy.egress.flatMap((rule: { ports: { port: number }[] }) => rule.ports);
  expect(ports.map(({ port }: { port: number }) => port)).toContain(
    clustered.state.kafka?.brokers[0]?.port,
  );
});

describe('the probes', () => {
  let url = '';
  beforeAll(async () => {
    const server = await aServer(() => aMoment(), { token: 't' });
    url = server.url;
    return () => server.close();
  });

  test.each(['livenessProbe', 'readinessProbe', 'startupProbe'])(
    '%s is answered without a token',
    async (probe) => {
      const { path, port } = container[probe].httpGet;

      expect(port).toBe('status');
      expect(await ask(`${url}${path}`)).toMatchObject({ status: 200 });
    },
  );
});
