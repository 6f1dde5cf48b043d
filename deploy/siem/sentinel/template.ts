// The ARM template of Microsoft Sentinel. Its names are those of the pages in docs; its columns are those of the sink.
// Invariants: every analytic rule is disabled; a function that an administrator may have is replaced only on request.

import { readdirSync, readFileSync } from 'node:fs';
import { columns } from '../../../connectors/sinks/sentinel/rows.ts';
import { attackTactics, tagsOfRule } from '../attack.ts';
import { asimSchemas, type KqlFunction } from './asim.ts';
import { workbookText } from './workbook.ts';

const sigma = new URL('../sigma/', import.meta.url);
const table = 'Sluice_CL';
const stream = 'Custom-Sluice';
/** "Monitoring Metrics Publisher", one of Azure's own roles. */
const publisherRole = '3913510d-42f4-4e42-8a64-420c390055eb';
const workspace = "parameters('workspaceName')";
const workspaceId = `resourceId('Microsoft.OperationalInsights/workspaces', ${workspace})`;
const endpointId =
  "resourceId('Microsoft.Insights/dataCollectionEndpoints', parameters('endpointName'))";
const ruleId = "resourceId('Microsoft.Insights/dataCollectionRules', parameters('ruleName'))";
const tableId = `resourceId('Microsoft.OperationalInsights/workspaces/tables', ${workspace}, '${table}')`;

const text = (description: string, defaultValue?: string) => ({
  type: 'string',
  ...(defaultValue !== undefined && { defaultValue }),
  metadata: { description },
});

/** The whole template; the functions are those of the workspace. */
export function template(functions: readonly KqlFunction[]): object {
  const savedFunctions = functions.map((one) => savedFunction(one));
  return {
    $schema: 'https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#',
    contentVersion: '1.0.0.0',
    parameters: {
      workspaceName: text('name of the Log Analytics workspace of Microsoft Sentinel'),
      location: text('region of the workspace', '[resourceGroup().location]'),
      endpointName: text('data collection endpoint', 'sluice-endpoint'),
      ruleName: text('data collection rule', 'sluice-rule'),
      principalId: text(
        'object id of the service principal that sends; empty: assign the role by hand',
        '',
      ),
      retentionInDays: {
        type: 'int',
        defaultValue: 90,
        metadata: { description: 'days in the table' },
      },
      createCustomUnions: {
        type: 'bool',
        defaultValue: false,
        metadata: {
          description:
            'create Im_…Custom and ASim_…Custom, which ASIM reads; false where the workspace has these functions',
        },
      },
    },
    resources: [
      tableResource(),
      endpointResource(),
      ruleResource(),
      roleResource(),
      ...savedFunctions,
      ...asimSchemas.flatMap(({ name, parameters }) => customUnions(name, parameters)),
      ...analyticRules(),
      workbookResource(),
    ],
    outputs: {
      endpoint: {
        type: 'string',
        value: `[reference(${endpointId}, '2022-06-01').logsIngestion.endpoint]`,
      },
      dcr_immutable_id: {
        type: 'string',
        value: `[reference(${ruleId}, '2022-06-01').immutableId]`,
      },
      stream_name: { type: 'string', value: stream },
    },
  };
}

const columnList = Object.entries(columns).map(([name, type]) => ({ name, type }));

function tableResource(): object {
  return {
    type: 'Microsoft.OperationalInsights/workspaces/tables',
    apiVersion: '2022-10-01',
    name: `[concat(${workspace}, '/${table}')]`,
    properties: {
      plan: 'Analytics',
      retentionInDays: "[parameters('retentionInDays')]",
      schema: { name: table, columns: columnList },
    },
  };
}

function endpointResource(): object {
  return {
    type: 'Microsoft.Insights/dataCollectionEndpoints',
    apiVersion: '2022-06-01',
    name: "[parameters('endpointName')]",
    location: "[parameters('location')]",
    properties: { networkAcls: { publicNetworkAccess: 'Enabled' } },
  };
}

function ruleResource(): object {
  return {
    type: 'Microsoft.Insights/dataCollectionRules',
    apiVersion: '2022-06-01',
    name: "[parameters('ruleName')]",
    location: "[parameters('location')]",
    dependsOn: [`[${tableId}]`, `[${endpointId}]`],
    properties: {
      dataCollectionEndpointId: `[${endpointId}]`,
      streamDeclarations: { [stream]: { columns: columnList } },
      destinations: {
        logAnalytics: [{ name: 'workspace', workspaceResourceId: `[${workspaceId}]` }],
      },
      dataFlows: [
        { streams: [stream], destinations: ['workspace'], outputStream: `Custom-${table}` },
      ],
    },
  };
}

function roleResource(): object {
  return {
    condition: "[not(empty(parameters('principalId')))]",
    type: 'Microsoft.Authorization/roleAssignments',
    apiVersion: '2022-04-01',
    name: `[guid(${ruleId}, parameters('principalId'))]`,
    scope: `[${ruleId}]`,
    dependsOn: [`[${ruleId}]`],
    properties: {
      roleDefinitionId: `[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '${publisherRole}')]`,
      principalId: "[parameters('principalId')]",
      principalType: 'ServicePrincipal',
    },
  };
}

function savedFunction({ name, parameters, body }: KqlFunction, condition?: string) {
  return {
    ...(condition !== undefined && { condition }),
    type: 'Microsoft.OperationalInsights/workspaces/savedSearches',
    apiVersion: '2020-08-01',
    name: `[concat(${workspace}, '/${name}')]`,
    dependsOn: [`[${tableId}]`],
    properties: {
      category: 'sluice',
      displayName: name,
      functionAlias: name,
      ...(parameters !== '' && { functionParameters: parameters }),
      query: body,
      version: 2,
    },
  };
}

/** The functions that the built-in parsers of ASIM call for those of a workspace. */
function customUnions(name: string, parameters: readonly { readonly name: string }[]) {
  const condition = "[parameters('createCustomUnions')]";
  const passed = parameters.map((one) => `${one.name}=${one.name}`).join(', ');
  const [filtering, plain] = [`Im_${name}Custom`, `ASim_${name}Custom`];
  const declared = asimSchemas.find((one) => one.name === name)?.parameters ?? [];
  const pack = ', pack:bool=false';
  return [
    savedFunction(
      {
        name: filtering,
        parameters: declared.map((one) => `${one.name}:${one.type}=${one.usual}`).join(', ') + pack,
        body: `union isfuzzy=true vim${name}Sluice(${passed})`,
      },
      condition,
    ),
    savedFunction(
      {
        name: plain,
        parameters: 'disabled:bool=false',
        body: `union isfuzzy=true ASim${name}Sluice(disabled=disabled)`,
      },
      condition,
    ),
  ];
}

interface StoredRule {
  readonly id: string;
  readonly title: string;
  readonly level: string;
  readonly query: string;
}

const severities: Readonly<Record<string, string>> = {
  low: 'Low',
  medium: 'Medium',
  high: 'High',
  critical: 'High',
};

/** By the time of ingestion, since a record that upstream shows late has an older time. */
const recent = '| where IngestedTime > ago(15m)';

function analyticRules(): readonly object[] {
  const { rules } = JSON.parse(readFileSync(new URL('converted/kusto.json', sigma), 'utf8'));
  const converted = Object.entries<StoredRule>(rules).map(([name, rule]) =>
    analyticRule(rule, `${rule.query}\n${recent}`, {
      ...attackOf(tagsOfRule(name)),
      queryFrequency: 'PT15M',
      queryPeriod: 'P1D',
      entityMappings: [
        entity('Account', 'Name', 'ActorUsername'),
        entity('IP', 'Address', 'SrcIpAddr'),
      ],
    }),
  );
  const written = readdirSync(new URL('written/', sigma))
    .toSorted()
    .map((file) => {
      const rule = JSON.parse(readFileSync(new URL(`written/${file}`, sigma), 'utf8'));
      // Two periods overlap, so that no group lies between two runs.
      return analyticRule(rule, rule.kusto, {
        ...attackOf(rule.tags),
        queryFrequency: 'PT1H',
        queryPeriod: 'PT2H',
      });
    });
  return [...converted, ...written];
}

/** Sentinel's words for tactics have no blanks, and each word begins with a capital. */
function attackOf(tags: readonly string[]) {
  const tactics = attackTactics(tags);
  const word = (name: string) =>
    name.replace(/(?:^| )(\w)/g, (_, letter: string) => letter.toUpperCase());
  const ids = tactics.flatMap(({ techniques }) => techniques.map(({ id }) => id));
  return { tactics: tactics.map(({ name }) => word(name)), techniques: [...new Set(ids)] };
}

function entity(entityType: string, identifier: string, columnName: string) {
  return { entityType, fieldMappings: [{ identifier, columnName }] };
}

function analyticRule(rule: Omit<StoredRule, 'query'>, query: string, when: object): object {
  return {
    type: 'Microsoft.OperationalInsights/workspaces/providers/alertRules',
    apiVersion: '2023-11-01',
    name: `[concat(${workspace}, '/Microsoft.SecurityInsights/${rule.id}')]`,
    kind: 'Scheduled',
    dependsOn: [
      `[resourceId('Microsoft.OperationalInsights/workspaces/savedSearches', ${workspace}, 'SluiceEvents')]`,
    ],
    properties: {
      displayName: `sluice: ${rule.title}`,
      description: 'See deploy/siem/sigma.',
      severity: severities[rule.level],
      enabled: false,
      query,
      triggerOperator: 'GreaterThan',
      triggerThreshold: 0,
      suppressionEnabled: false,
      suppressionDuration: 'PT1H',
      eventGroupingSettings: { aggregationKind: 'AlertPerResult' },
      ...when,
    },
  };
}

function workbookResource(): object {
  return {
    type: 'Microsoft.Insights/workbooks',
    apiVersion: '2022-04-01',
    name: `[guid(${workspaceId}, 'sluice')]`,
    location: "[parameters('location')]",
    kind: 'shared',
    properties: {
      displayName: 'sluice: changes, agents, threats',
      category: 'sentinel',
      sourceId: `[${workspaceId}]`,
      version: '1.0',
      serializedData: workbookText(),
    },
  };
}
