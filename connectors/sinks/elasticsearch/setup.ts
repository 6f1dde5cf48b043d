// Creates the index template that the cluster needs before the first event, and imports dashboards where the config names
// the address of Kibana or OpenSearch Dashboards.

import type { SetupDeps } from '../../../src/contracts/config.ts';
import {
  ExportError,
  type Format,
  type HttpResponse,
  isObject,
  type Json,
  type JsonObject,
} from '../../../src/contracts/index.ts';
import { getOnce, postOnce } from '../../shared/http-post.ts';
import { type ClusterSettings, foreignResponse, receiversOf } from './cluster.ts';
import { type DashboardSettings, importDashboards } from './dashboards.ts';
import { templateFor } from './template.ts';

const doing = 'setting up';

/** Installs the index template of the format, and the dashboards, replacing existing ones. */
export async function setUp(
  settings: ClusterSettings & { readonly dashboards?: DashboardSettings | undefined },
  format: Format,
  deps: SetupDeps,
): Promise<string> {
  if (format.verbatim || (format.name !== 'ecs' && format.name !== 'json')) {
    const message = `${doing}: there is no index template for records as upstream sent them`;
    const next = 'Write one for their fields, or send format: ecs or json.';
    throw new ExportError('config_invalid', message, { next });
  }
  if (!/[a-z0-9]/.test(settings.index.replace(/\{\w+\}/g, ''))) {
    const message = `${doing}: a template for the index ${settings.index} would apply to every index of the cluster`;
    const next = 'Begin index with a word of its own, such as sluice-{company}.';
    throw new ExportError('config_invalid', message, { next });
  }
  const { version } = await ask(settings, '/', deps);
  const isOpenSearch = isObject(version) && version.distribution === 'opensearch';
  const { name, pattern, body } = templateFor({
    index: settings.index,
    format: format.name,
    isOpenSearch,
  });
  const { acknowledged } = await ask(settings, `/_index_template/${name}`, deps, body);
  if (acknowledged !== true) {
    const message = `${doing}: the cluster has not acknowledged the index template ${name}`;
    throw new ExportError('sink_refused', message, {
      next: 'Check its health, then repeat the command.',
    });
  }
  const { dashboards } = settings;
  if (dashboards === undefined) return `index template ${name}`;
  const imported = await importDashboards(settings, dashboards, pattern, deps);
  return `index template ${name}, ${imported}`;
}

/** Posts the body, or gets if there is none; resolves to the response's object. */
async function ask(
  settings: ClusterSettings,
  path: string,
  { tools, signal }: SetupDeps,
  body?: object,
): Promise<JsonObject> {
  const [receiver] = receiversOf({ ...settings, compression: 'none' }, path);
  if (receiver === undefined) throw new RangeError('a cluster has an address');
  const context = { doing, tools, signal };
  let response: HttpResponse;
  if (body === undefined) {
    response = await getOnce(receiver, context);
    if (response.status !== 200) throw refusal(response);
  } else {
    const headers = { 'content-type': 'application/json' };
    const post = { body: Buffer.from(JSON.stringify(body)), headers };
    const answer = await postOnce(receiver, post, context);
    if (answer.outcome !== 'accepted') throw answer.cause;
    response = answer.response;
  }
  const said = parsed(response.body);
  if (!isObject(said)) throw foreignResponse(response, doing);
  return said;
}

function refusal({ status }: HttpResponse): ExportError {
  const message = `${doing}: the cluster answered ${status}`;
  const next = 'Give the credential the rights monitor and manage_index_templates.';
  return new ExportError('sink_refused', message, { next, details: { status } });
}

function parsed(body: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return undefined;
  }
}
