// Imports dashboards into Kibana or OpenSearch Dashboards, with the API for saved objects that both have
// (https://www.elastic.co/docs/api/doc/kibana/operation/operation-post-saved-objects-import). The file is the NDJSON of
// an export, such as one of deploy/siem/elastic. Invariants: an import counts only if the response reports that every object was
// stored; the index pattern of our own file follows the setting `index`.

import { readFileSync } from 'node:fs';
import type { SetupDeps } from '../../../src/contracts/config.ts';
import { ExportError, isObject, type Json, type JsonObject } from '../../../src/contracts/index.ts';
import { postOnce } from '../../shared/http-post.ts';
import { plainLine } from '../../shared/receiver-words.ts';
import { type ClusterSettings, receiversOf } from './cluster.ts';

const doing = 'importing dashboards';
const importPath = '/api/saved_objects/_import?overwrite=true';
const boundary = 'sluice-saved-objects';
/** The index pattern in the files of deploy/siem/elastic. */
const patternId = 'sluice-index-pattern';

/** The setting `dashboards`. */
export interface DashboardSettings {
  readonly url: string;
  readonly file: string;
}

/** Imports the file and replaces objects of the same ids; resolves to a summary. `pattern`: of the indices. */
export async function importDashboards(
  settings: ClusterSettings,
  { url, file }: DashboardSettings,
  pattern: string,
  { tools, signal }: SetupDeps,
): Promise<string> {
  const objects = savedObjects(file, pattern);
  const tls = url.startsWith('http:') ? undefined : settings.tls;
  const [receiver] = receiversOf({ ...settings, url, tls, compression: 'none' }, importPath);
  if (receiver === undefined) throw new RangeError('Kibana has an address');
  const headers = {
    'content-type': `multipart/form-data; boundary=${boundary}`,
    // Each product refuses a request without its header.
    'kbn-xsrf': 'true',
    'osd-xsrf': 'true',
  };
  const answer = await postOnce(
    receiver,
    { body: formOf(objects), headers },
    { doing, tools, signal },
  );
  if (answer.outcome !== 'accepted') throw answer.cause;
  const said = parsed(Buffer.from(answer.response.body).toString('utf8'));
  if (isObject(said) && said.success === true && said.successCount === objects.length)
    return `${objects.length} saved objects of ${file}`;
  throw refusal(said, answer.response.status);
}

function savedObjects(file: string, pattern: string): readonly JsonObject[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    const message = `${doing}: cannot read dashboards.file ${file}`;
    const next = 'Name an NDJSON export, such as deploy/siem/elastic/dashboards.kibana.ndjson.';
    throw new ExportError('config_invalid', message, { next, cause });
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const objects = lines.map((line, at) => {
    const object = parsed(line);
    if (isObject(object) && typeof object.type === 'string') return object;
    const message = `${doing}: line ${at + 1} of dashboards.file ${file} is no saved object`;
    throw new ExportError('config_invalid', message, {
      next: 'Export the objects again as NDJSON.',
    });
  });
  return objects.map((object) => withPattern(object, pattern));
}

function withPattern(object: JsonObject, pattern: string): JsonObject {
  if (object.type !== 'index-pattern' || object.id !== patternId) return object;
  const { attributes } = object;
  const title = pattern.replace(/(?:\*[-._]?)+$/, '*');
  return { ...object, attributes: { ...(isObject(attributes) && attributes), title } };
}

function formOf(objects: readonly JsonObject[]): Uint8Array {
  const head = [
    `--${boundary}`,
    'Content-Disposition: form-data; name="file"; filename="sluice.ndjson"',
    'Content-Type: application/ndjson',
    '',
    '',
  ].join('\r\n');
  const lines = objects.map((object) => `${JSON.stringify(object)}\n`).join('');
  return Buffer.from(`${head}${lines}\r\n--${boundary}--\r\n`);
}

function refusal(said: Json | undefined, status: number): ExportError {
  if (!isObject(said) || typeof said.success !== 'boolean') {
    const message = `${doing}: the receiver answered ${status} with a response that is not from Kibana or OpenSearch Dashboards`;
    const next = 'Check that dashboards.url is the address of Kibana or OpenSearch Dashboards.';
    return new ExportError('sink_refused', message, { next, details: { status } });
  }
  const [first] = Array.isArray(said.errors) ? said.errors : [];
  const { id, error } = isObject(first) ? first : {};
  const type = isObject(error) ? error.type : undefined;
  const reason = typeof type === 'string' ? `: ${plainLine(type)} of ${plainLine(String(id))}` : '';
  const message = `${doing}: not every saved object was stored${reason}`;
  const next =
    'Check the version of Kibana or OpenSearch Dashboards, and use the file for that product.';
  return new ExportError('sink_refused', message, { next });
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
