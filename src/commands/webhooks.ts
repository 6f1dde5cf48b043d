// `sluice webhooks register`: makes upstream send its events to a webhooks source. No other part of sluice changes
// upstream, so registration is a manual step. The document has no way to list or delete registrations, so a second
// request with the same address and events has the same Idempotency-Key and creates no second registration. The
// document does not describe the response, which may contain the signing key of deliveries: it is never printed, and
// written to a file only if requested.

import { createHash } from 'node:crypto';
import { openSync, writeFileSync } from 'node:fs';
import { loadConfig } from '../config/index.ts';
import { ExportError, type Failure, isObject, UsageError } from '../contracts/index.ts';
import { openTools, planFrom } from '../run/index.ts';
import { parseBody } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';
import {
  type CommandGroup,
  configOption,
  defineCommand,
  failureText,
  logLevelOption,
} from './shared/command.ts';
import { refuseUnknown } from './shared/typed.ts';

const answerWithinMs = 60_000;

/** 0: registered, now or before; 3: upstream rejects the request. */
const register = defineCommand({
  name: 'register',
  about: 'register the address of a webhooks source at upstream',
  options: {
    config: configOption,
    source: { value: 'name', about: 'the webhooks source', needed: true },
    answer: { value: 'file', about: 'file for upstream’s response, readable for you only' },
    logLevel: logLevelOption,
  },
  async run({ config: file, source: name, answer: into, logLevel = 'error' }, { env, out, err }) {
    const config = await loadConfig(file, { env });
    refuseUnknown('source', name, Object.keys(config.sources));
    await using tools = openTools(
      await openLog({ level: logLevel, form: logForm(process.stderr) }),
    );
    const plan = planFrom(config, tools);
    const source = plan.sources.find((one) => one.name === name);
    const [stream] = source?.streams ?? [];
    const client = plan.upstreams.get(source?.upstream ?? '');
    if (stream?.kind !== 'push' || client === undefined) {
      throw new UsageError(`--source: ${name} is no webhooks source`);
    }
    const { url, events } = stream.registration;
    if (url === null) {
      throw new UsageError(
        `sources.${name}.url is required: no sender can reach ${stream.listen.host}`,
      );
    }
    const kept = into === undefined ? null : newFile(into);
    const body = { url, events };
    const idempotencyKey = createHash('sha256').update(JSON.stringify(body)).digest('hex');
    const answer = await client.get(
      { path: '/webhooks', template: '/webhooks', query: [], body, idempotencyKey },
      AbortSignal.timeout(answerWithinMs),
    );
    if (answer.outcome !== 'ok') {
      err(failureText(notRegistered(answer, { source: name, upstream: client.name, url })));
      return 3;
    }
    if (kept !== null) writeFileSync(kept, answer.body);
    out(`registered${idText(answer.body)}: ${url}`);
    out(`for ${events.join(', ')}`);
    return 0;
  },
});

/** The failure with the next step for a registration, which is not repeated by itself. */
function notRegistered(
  { outcome, status = 0, cause }: Failure,
  {
    source,
    upstream,
    url,
  }: { readonly source: string; readonly upstream: string; readonly url: string },
): ExportError {
  const { code, message, details } = cause;
  const next = () => {
    if (status === 403) return `${cause.next} Registering needs the scope webhooks:manage.`;
    if (status === 404 || status === 405) {
      return `The API has no POST /webhooks below upstreams.${upstream}.base_url: correct base_url, or register ${url} at the vendor by hand. Nothing was registered.`;
    }
    if (status === 400 || status === 409 || status === 422) {
      return `Check url and events of sources.${source}, then run the command again. Nothing was registered.`;
    }
    const isUnknown = outcome === 'retry' || outcome === 'blocked';
    return isUnknown
      ? `Run the command again: it registers the same address once, however often it runs. If the failure lasts, check address, proxy and TLS settings of upstreams.${upstream}.`
      : cause.next;
  };
  return new ExportError(code, message, { next: next(), details, cause });
}

/** The group. */
export const webhooks: CommandGroup = {
  name: 'webhooks',
  about: 'have upstream send its events',
  commands: [register],
};

/** Created before the request: the response may come only once. */
function newFile(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    throw new UsageError(`--answer: ${String(error)}`);
  }
}

function idText(body: Uint8Array): string {
  try {
    const answer = parseBody(body);
    const id = isObject(answer) ? answer.id : null;
    return typeof id === 'string' && id.length <= 100 ? ` as ${id}` : '';
  } catch {
    return '';
  }
}
