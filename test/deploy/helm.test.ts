// The Helm chart: Helm and the schemas of Kubernetes accept it, it says the same as deploy/kubernetes*, and it refuses
// values of which a pod would not work. Its README and schema are those of its values.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { chartReadme, chartSchema } from '../../deploy/helm/generate.ts';
import { chart as chartArchive } from '../../deploy/release/chart.ts';
import { blocksOf } from '../../docs/generate/page.ts';
import { parseConfig } from '../../src/config/config.ts';
import { configEnv } from '../config/config-text.ts';
import { runProgram } from '../support/children.ts';
import { findHelm, schemaFlaws } from '../support/helm.ts';
import { tempDir } from '../support/temp.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const chart = join(deploy, 'helm');
const read = (path: string) => readFileSync(join(deploy, path), 'utf8');
const readme = read('helm/README.md');
const [local = '', kafka = ''] = blocksOf({ path: 'README.md', text: readme })
  .filter(({ info }) => info === 'yaml values')
  .map(({ text }) => text);
const versions = ['1.35', '1.36', '1.37'];

let helm = '';
beforeAll(async () => {
  helm = await findHelm();
});

async function ran(command: string, values: string, set: readonly string[] = []) {
  const file = join(tempDir(), 'values.yaml');
  writeFileSync(file, values);
  const name = command === 'template' ? ['sluice'] : [];
  const sets = set.flatMap((one) => ['--set-json', one]);
  return await runProgram(helm, [command, ...name, chart, '--values', file, ...sets]);
}

// biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes
type Manifest = any;

/** The objects of a release, by kind. */
async function rendered(values: string, set: readonly string[] = []) {
  const { output, errors, exitCode } = await ran('template', values, set);
  expect(exitCode, errors).toBe(0);
  const objects: readonly Manifest[] = parseAllDocuments(output).map((one) => one.toJS());
  return Object.fromEntries(objects.filter(Boolean).map((one) => [one.kind, one]));
}

/** Everything that the chart can create. */
const everything = [
  'serviceMonitor.enabled=true',
  'prometheusRule.enabled=true',
  'archiveKey.existingSecret="archive"',
  'env=[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]',
  'podLabels={"team":"soc"}',
  'podAnnotations={"a":"b"}',
  'serviceAccount.name="sluice"',
  'imagePullSecrets=[{"name":"registry"}]',
  'priorityClassName="high"',
  'nodeSelector={"disk":"ssd"}',
  'tolerations=[{"key":"a","operator":"Exists"}]',
  'affinity={"nodeAffinity":{}}',
  'persistence.storageClass="fast"',
  'networkPolicy.extraEgress=[{"ports":[{"protocol":"UDP","port":514}]}]',
  `image.digest="sha256:${'a'.repeat(64)}"`,
];

test('the README and the schema are fresh; else run: npm run docs', () => {
  expect(chartReadme(readme)).toBe(readme);
  expect(JSON.parse(chartSchema())).toEqual(JSON.parse(read('helm/values.schema.json')));
});

describe.each([
  ['local', local],
  ['kafka', kafka],
])('mode %s', (_, values) => {
  test('helm lint finds nothing', async () => {
    const { output, exitCode } = await ran('lint', values);

    expect([exitCode, output.match(/\[(WARNING|ERROR)\].*/g)]).toEqual([0, null]);
  });

  test.each(versions)(
    'its objects, with every value set, pass the schemas of Kubernetes %s',
    async (version) => {
      for (const set of [[], everything]) {
        const { output } = await ran('template', values, set);
        const file = join(tempDir(), 'objects.yaml');
        writeFileSync(file, output);

        expect(await schemaFlaws(file, version)).toEqual([]);
      }
    },
  );

  test('its config passes, and the pod provides what it names', async () => {
    const { ConfigMap, StatefulSet } = await rendered(values);
    const text = ConfigMap.data['sluice.yaml'];
    const files = [...text.matchAll(/\$\{file:([^}]+)\}/g)].map(([, path]) => [path, 's']);
    const config = parseConfig(
      text,
      'sluice.yaml',
      configEnv({ POD_NAME: 'sluice-2' }, Object.fromEntries(files)),
    );

    expect(config.notices).toEqual([]);
    expect(text).toBe(text.trim().concat('\n'));
    const [container] = StatefulSet.spec.template.spec.containers;
    expect(config.status).toMatchObject({
      host: '0.0.0.0',
      port: container.ports[0].containerPort,
    });
    expect(StatefulSet.spec.template.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(
      config.shutdown.timeoutMs,
    );
  });
});

/** An object without that in which a chart differs from a plain file: names, labels, the registry's address. */
function comparable(object: Manifest): Manifest {
  const text = JSON.stringify(object, (key, value) => {
    if (
      ['metadata', 'imagePullPolicy', 'image', 'persistentVolumeClaimRetentionPolicy'].includes(key)
    )
      return undefined;
    if (key === 'matchLabels' || key === 'selector')
      return value['sluice-status'] || value['kubernetes.io/metadata.name'] ? value : 'pods';
    if (key === 'configMap') return 'config';
    return value;
  });
  return JSON.parse(text);
}

test('in mode local its objects are those of deploy/kubernetes', async () => {
  const objects = await rendered(local);

  for (const [kind, file] of [
    ['StatefulSet', 'statefulset'],
    ['Service', 'service'],
    ['NetworkPolicy', 'networkpolicy'],
  ] as const) {
    expect(comparable(objects[kind])).toEqual(comparable(parse(read(`kubernetes/${file}.yaml`))));
  }
  expect(parse(objects.ConfigMap.data['sluice.yaml'])).toEqual(
    parse(read('kubernetes/sluice.yaml')),
  );
  expect(objects.PodDisruptionBudget).toBeUndefined();
});

test('in mode kafka it has the differences of deploy/kubernetes-kafka', async () => {
  const { StatefulSet, PodDisruptionBudget, ConfigMap } = await rendered(kafka);
  const { spec: changed } = parse(read('kubernetes-kafka/statefulset.yaml'));
  const pod = comparable(StatefulSet).spec;
  const expected = comparable({ spec: changed }).spec;

  expect(pod.replicas).toBe(expected.replicas);
  expect(pod.template.spec.topologySpreadConstraints).toEqual(
    expected.template.spec.topologySpreadConstraints,
  );
  expect(pod.template.spec.containers[0].env).toEqual(expected.template.spec.containers[0].env);
  expect(comparable(PodDisruptionBudget)).toEqual(
    comparable(parse(read('kubernetes-kafka/poddisruptionbudget.yaml'))),
  );
  expect(parse(ConfigMap.data['sluice.yaml'])).toEqual(parse(read('kubernetes-kafka/sluice.yaml')));
});

test('a changed config changes the pods; one of a ConfigMap of yours does not', async () => {
  const sum = async (set: readonly string[], values = local) => {
    const { StatefulSet } = await rendered(values, set);
    return StatefulSet.spec.template.metadata.annotations?.['checksum/config'];
  };
  const name = 'config.sources={"audit":{"type":"audit_events","upstream":"edge","every":"5s"}}';

  expect(await sum([])).toBe(await sum([]));
  expect(await sum([name])).not.toBe(await sum([]));
  const { StatefulSet, ConfigMap } = await rendered('existingConfigMap: mine');
  expect(ConfigMap).toBeUndefined();
  expect(StatefulSet.spec.template.metadata.annotations).toBeUndefined();
  expect(StatefulSet.spec.template.spec.volumes[0]).toEqual({
    name: 'config',
    configMap: { name: 'mine' },
  });
});

test('the archive of a release gives the same objects as the directory', async () => {
  const archive = join(tempDir(), 'chart.tgz');
  writeFileSync(archive, chartArchive(0));
  const values = join(tempDir(), 'values.yaml');
  writeFileSync(values, local);
  const one = await runProgram(helm, ['template', 'sluice', archive, '--values', values]);

  expect(one.output).toContain('kind: StatefulSet');
  expect(one.output).toBe((await ran('template', local)).output);
});

test('large numbers of a config stay as they are', async () => {
  const { ConfigMap } = await rendered(local, ['config.state.max_bytes=123456789012']);

  expect(parse(ConfigMap.data['sluice.yaml']).state.max_bytes).toBe(123_456_789_012);
});

test('its probes may request an IPv6 address', async () => {
  const { StatefulSet } = await rendered(local, ['config.status.listen="[::]:8686"']);

  expect(StatefulSet.spec.template.spec.containers[0].ports[0].containerPort).toBe(8_686);
});

test('secrets are files, the archive key apart from the others, and none is a value', async () => {
  const { StatefulSet } = await rendered(local, everything);
  const { volumes, containers } = StatefulSet.spec.template.spec;

  expect(volumes.filter(({ secret }: Manifest) => secret)).toEqual([
    { name: 'secrets', secret: { secretName: 'sluice', defaultMode: 0o440 } },
    {
      name: 'archive-key',
      secret: {
        secretName: 'archive',
        defaultMode: 0o440,
        items: [{ key: 'archive.key', path: 'archive.key' }],
      },
    },
  ]);
  expect(containers[0].image).toBe(`registry.example/sluice@sha256:${'a'.repeat(64)}`);
});

test('Prometheus scrapes with the token, under the job of the alerts, and has the alerts of the project', async () => {
  const { ServiceMonitor, PrometheusRule, Service } = await rendered(local, everything);
  const { spec } = ServiceMonitor;

  expect(spec.endpoints[0]).toMatchObject({
    port: Service.spec.ports[0].name,
    path: '/metrics',
    authorization: { credentials: { name: 'sluice', key: 'status_token' } },
  });
  expect(Service.metadata.labels).toMatchObject(spec.selector.matchLabels);
  expect(Service.metadata.labels[spec.jobLabel]).toBe('sluice');
  expect(PrometheusRule.spec).toEqual(parse(read('prometheus/alerts.yaml')));
});

test.each([
  ['two replicas of a local state', local, ['replicas=2'], 'Set replicas: 1, or mode: kafka'],
  ['no config', '', [], 'config is empty: set config'],
  [
    'mode kafka without the state in Kafka',
    local,
    ['mode="kafka"'],
    'config.state.kafka is missing',
  ],
  ['mode local with the state in Kafka', kafka, ['mode="local"', 'replicas=1'], 'set mode: kafka'],
  [
    'a status that the probes cannot reach',
    local,
    ['config.status={}'],
    'config.status.listen is 127.0.0.1:8686',
  ],
  ['a misspelt value', local, ['replica=1'], "'replica' not allowed"],
  ['a wrong mode', local, ['mode="sqlite"'], "'local', 'kafka'"],
  ['a wrong digest', local, ['image.digest="latest"'], '/image/digest'],
])('it refuses %s', async (_, values, set, reason) => {
  const { exitCode, errors } = await ran('template', values, set);

  expect(exitCode).not.toBe(0);
  expect(errors).toContain(reason);
});

test('its version, the version of its app and the tag of deploy/kubernetes are those of the program', () => {
  const { version } = JSON.parse(readFileSync(join(deploy, '../package.json'), 'utf8'));
  const about = parse(read('helm/Chart.yaml'));

  expect([about.version, about.appVersion]).toEqual([version, version]);
  expect(parse(read('kubernetes/kustomization.yaml')).images[0].newTag).toBe(version);
});
