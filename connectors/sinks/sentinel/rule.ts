// The columns that a data collection rule declares, read from Azure Resource Manager for `check
// --connect`. The rule is found by its immutableId among all that the identity may read (Azure
// Resource Graph, https://learn.microsoft.com/rest/api/azureresourcegraph), and its declaration is
// read from the rule itself
// (https://learn.microsoft.com/rest/api/monitor/data-collection-rules/get). Sending events needs
// neither permission. Invariant: an unreadable rule is reported and never an error: only a rule
// that was read and lacks a column is one.

import type { Inspection } from '../../../src/contracts/config.ts';
import {
  ExportError,
  type HttpResponse,
  isObject,
  type Json,
  type JsonObject,
  Secret,
} from '../../../src/contracts/index.ts';
import { getOnce, type HttpReceiver, type PostContext, postOnce } from '../../shared/http-post.ts';
import { parsedJson } from '../../shared/parsed-json.ts';
import { plainLine, receiverWords } from '../../shared/receiver-words.ts';
import { columns } from './rows.ts';
import type { AzureToken } from './token.ts';

/** The rule, its stream, and the service to query. */
export interface RuleSettings extends Pick<HttpReceiver, 'timeout' | 'tls' | 'proxy'> {
  /** Address of Azure Resource Manager. */
  readonly manager: string;
  readonly rule: string;
  readonly stream: string;
}

type Declared = ReadonlyMap<string, string>;

/** Compares sluice's columns with the rule's. Throws an ExportError if the rule lacks one. */
export async function inspectRule(
  settings: RuleSettings,
  token: AzureToken,
  context: PostContext,
): Promise<Inspection> {
  const { rule, stream } = settings;
  let declared: Declared | null;
  try {
    declared = await declaredBy(settings, token, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof ExportError)) throw error;
    const reported = `whether ${rule} declares every column of ${stream} could not be seen: ${error.message}. ${error.next}`;
    return { summary: reported, isSeen: false };
  }
  const all = Object.entries(columns);
  const wrong = all.filter(([name, type]) => !holds(declared?.get(name), type));
  if (wrong.length === 0) {
    return { summary: `${rule} declares all ${all.length} columns of ${stream}`, isSeen: true };
  }
  const names = wrong.map(([name, type]) => {
    const other = declared?.get(name);
    return `${name} (${type}${other === undefined ? '' : `, and not ${plainLine(other)}`})`;
  });
  const what =
    declared === null
      ? `does not declare the stream ${stream}`
      : `drops fields that ${stream} does not declare: ${names.join(', ')}`;
  throw new ExportError('sink_refused', `the data collection rule ${rule} ${what}`, {
    next: 'Declare it in streamDeclarations of the rule and in its table: Azure responds 204 for fields that it drops.',
  });
}

/** Whether a column of the declared type keeps every value of another type. */
function holds(declared: string | undefined, type: string): boolean {
  const wider: Readonly<Record<string, readonly string[]>> = { int: ['long', 'real'] };
  return [type, 'string', 'dynamic', ...(wider[type] ?? [])].includes(declared ?? '');
}

/** The columns of the stream, type by name; null: the rule has no such stream. */
async function declaredBy(
  { manager, rule, stream, ...receiver }: RuleSettings,
  token: AzureToken,
  context: PostContext,
): Promise<Declared | null> {
  const bearer = await token.current(context.signal);
  const headers = { authorization: new Secret(() => `Bearer ${bearer}`) };
  const root = manager.replace(/\/+$/, '');
  const at = (path: string) =>
    ({ ...receiver, headers, url: `${root}${path}`, compression: 'none' }) as const;
  const query = `resources | where type =~ 'microsoft.insights/datacollectionrules' and properties.immutableId =~ '${rule}' | project id`;
  const found = await postOnce(
    at('/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01'),
    {
      body: Buffer.from(JSON.stringify({ query })),
      headers: { 'content-type': 'application/json' },
    },
    { ...context, explain: receiverWords },
  );
  if (found.outcome !== 'accepted') throw found.cause;
  const { data } = objectIn(found.response);
  const [first] = Array.isArray(data) ? data : [];
  const id = isObject(first) ? first.id : null;
  if (typeof id !== 'string' || !/^\/subscriptions\/[^?#]+$/i.test(id)) {
    throw unseen('the identity may read no such rule', 'To have it compared, give');
  }
  const read = await getOnce(at(`${id}?api-version=2023-03-11`), context);
  if (read.status !== 200) {
    throw unseen(`reading it was answered ${read.status}: ${receiverWords(read)}`, 'Give');
  }
  const { properties } = objectIn(read);
  if (!isObject(properties) || properties.immutableId !== rule) {
    throw unseen('the response is not this rule', 'Check resource_manager, and give');
  }
  const { streamDeclarations: streams } = properties;
  const declaration = isObject(streams) ? streams[stream] : null;
  return isObject(declaration) ? columnsOf(declaration.columns) : null;
}

function columnsOf(declared: Json | undefined): Declared {
  const all = Array.isArray(declared) ? declared : [];
  return new Map(
    all.flatMap((column) =>
      isObject(column) && typeof column.name === 'string' ? [[column.name, `${column.type}`]] : [],
    ),
  );
}

function objectIn({ body, status }: HttpResponse): JsonObject {
  const said = parsedJson(body);
  if (isObject(said)) return said;
  throw unseen(`the answer (${status}) is no JSON object`, 'Check resource_manager, and give');
}

function unseen(what: string, doing: string): ExportError {
  const next = `${doing} it the role “Monitoring Reader” on the rule, or compare the columns above yourself.`;
  return new ExportError('sink_refused', what, { next });
}
