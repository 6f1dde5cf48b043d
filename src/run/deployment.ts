// Before a process works on a state in Kafka: that the state belongs to its deployment, or to none yet, and then to its
// own from now on (cluster/deployment.ts).

import {
  compareDeployments,
  type Deployment,
  deploymentOf,
  differenceText,
  type MemberSettings,
} from '../cluster/index.ts';
import type { Control } from '../cluster/kafka.ts';
import { asExportError, type Clock, ExportError, type Log } from '../contracts/index.ts';

/** The dependencies for storing a deployment. */
export interface DeploymentDeps {
  /** Followed. */
  readonly control: Control;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Resolves where the state is this deployment's; stores that where it was no one's. Throws `config_invalid` where it is
 * another's. Resolves with how the upstreams differ from the stored ones; null: they do not, or nothing can be compared.
 */
export async function agreeOnDeployment(
  kafka: MemberSettings,
  { control, clock, log }: DeploymentDeps,
): Promise<string | null> {
  const own = deploymentOf(kafka);
  if (own === null) return null;
  await control.caughtUp();
  const stored = control.deployment ?? (await claimed(kafka, own, { control, clock }));
  const compared = compareDeployments(stored, own);
  if (compared.isForeign) {
    if (control.claims.some(({ name }) => name === own.name)) await control.unclaim(own.name);
    throw foreign(kafka, stored);
  }
  const difference = differenceText(compared);
  if (difference !== '') {
    log.warn('deployment_changed', 'the upstreams of the deployment have changed', {
      ...{ deployment: stored.name, upstreams: difference },
      next: 'Check that this is the deployment that the state in Kafka belongs to. sluice continues.',
    });
  }
  if (control.deployment === null || difference !== '') {
    await control.belongsTo({ name: stored.name, upstreams: own.upstreams });
  }
  return difference === '' ? null : `deployment ${stored.name}: ${difference}`;
}

/** After a reload: stores the upstreams of the config that runs now, so that it is accepted at the next start. */
export function storeDeployment(kafka: MemberSettings | null, deps: DeploymentDeps): void {
  if (kafka === null) return;
  agreeOnDeployment(kafka, deps).catch((error) => {
    const { message, next } = asExportError(error, 'storing the deployment');
    deps.log.warn('deployment_not_stored', 'failed to store the deployment after a reload', {
      error: message,
      next,
    });
  });
}

/** The first deployment that wants a state that is no one's: the order in the topic decides. */
async function claimed(
  kafka: MemberSettings,
  own: Deployment,
  { control, clock }: Pick<DeploymentDeps, 'control' | 'clock'>,
): Promise<Deployment> {
  const { LogClient, ensureTopics, clusterError } = await import('../cluster/kafka.ts');
  const client = new LogClient(kafka, clock);
  try {
    await ensureTopics(client, kafka);
  } catch (error) {
    throw clusterError(error, `looking for the state ${kafka.prefix}`);
  } finally {
    client.close();
  }
  await control.claim(own);
  for (;;) {
    await control.caughtUp();
    if (control.deployment !== null) return control.deployment;
    // Claims are read in the order of the topic: one before ours would have been read before ours.
    const [first] = control.claims;
    if (first !== undefined) return first;
    await clock.sleep(pauseMs);
  }
}

const pauseMs = 100;

/** The result of a check of the deployment. */
export interface DeploymentFinding {
  readonly subject: string;
  /** Why a run would be refused; null: it would not. */
  readonly cause: ExportError | null;
  /** A run would work; the finding is only a note. */
  readonly isNote: boolean;
}

/**
 * The result that `agreeOnDeployment` would have; changes nothing. Null: the config has nothing to compare. Throws
 * `sink_unreachable` or `sink_refused`.
 */
export async function deploymentFinding(
  kafka: MemberSettings,
  clock: Clock,
): Promise<DeploymentFinding | null> {
  const own = deploymentOf(kafka);
  if (own === null) return null;
  const { Control: ControlTopic, usedShards } = await import('../cluster/kafka.ts');
  const control = new ControlTopic(kafka, clock);
  let stored: Deployment | null;
  try {
    await control.readAll();
    stored = control.deployment ?? control.claims[0] ?? null;
  } finally {
    await control.close();
  }
  const isNew = stored === null && (await usedShards(kafka, clock)).length === 0;
  if (stored === null) {
    const since = isNew ? 'the first start' : 'the state is of an older version: the first start';
    const subject = `deployment ${own.name}: not stored yet; ${since} stores it, and from then on another deployment is refused`;
    return { subject, cause: null, isNote: !isNew };
  }
  const compared = compareDeployments(stored, own);
  const subject = `deployment ${stored.name}`;
  if (compared.isForeign) return { subject, cause: foreign(kafka, stored), isNote: false };
  const difference = differenceText(compared);
  if (difference === '') return { subject, cause: null, isNote: false };
  return { subject: `${subject}; upstreams ${difference}`, cause: null, isNote: true };
}

function foreign({ prefix, deploymentName }: MemberSettings, { name }: Deployment): ExportError {
  const why =
    deploymentName === undefined
      ? 'this config has none of its upstreams (address and client id)'
      : `state.kafka.deployment is ${deploymentName}`;
  const what = `the state ${prefix} in Kafka belongs to the deployment ${name}, and ${why}`;
  return new ExportError('config_invalid', what, {
    next: `Give this deployment a state.kafka.prefix of its own. If it is the same deployment, for example after a change of client id, set state.kafka.deployment to ${name}. Nothing was changed.`,
  });
}
