// A JSON Schema of the resources in the ARM template, by the published reference of each type
// (https://learn.microsoft.com/azure/templates). It has the required properties and the words that Azure accepts; Azure's own
// schemas cannot be downloaded here.

const text = { type: 'string', minLength: 1 } as const;
const duration = { type: 'string', pattern: '^P(T\\d+[HM]|\\d+D)$' } as const;
const columns = {
  type: 'array',
  minItems: 1,
  items: {
    type: 'object',
    required: ['name', 'type'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_]{1,44}$' },
      type: { enum: ['string', 'int', 'long', 'real', 'boolean', 'dynamic', 'datetime'] },
    },
  },
} as const;

interface Shape {
  readonly apiVersion: string;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, object>>;
}

const shapes: Readonly<Record<string, Shape>> = {
  'Microsoft.OperationalInsights/workspaces/tables': {
    apiVersion: '2022-10-01',
    required: ['schema'],
    properties: {
      plan: { enum: ['Analytics', 'Basic'] },
      retentionInDays: { type: ['integer', 'string'] },
      schema: {
        type: 'object',
        required: ['name', 'columns'],
        properties: { name: { type: 'string', pattern: '_CL$' }, columns },
      },
    },
  },
  'Microsoft.Insights/dataCollectionEndpoints': {
    apiVersion: '2022-06-01',
    required: [],
    properties: {
      networkAcls: {
        type: 'object',
        properties: {
          publicNetworkAccess: { enum: ['Enabled', 'Disabled', 'SecuredByPerimeter'] },
        },
      },
    },
  },
  'Microsoft.Insights/dataCollectionRules': {
    apiVersion: '2022-06-01',
    required: ['streamDeclarations', 'destinations', 'dataFlows', 'dataCollectionEndpointId'],
    properties: {
      dataCollectionEndpointId: text,
      streamDeclarations: {
        type: 'object',
        minProperties: 1,
        propertyNames: { pattern: '^Custom-' },
        additionalProperties: { type: 'object', required: ['columns'], properties: { columns } },
      },
      destinations: { type: 'object', required: ['logAnalytics'] },
      dataFlows: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['streams', 'destinations', 'outputStream'],
          properties: { outputStream: { type: 'string', pattern: '^(Custom|Microsoft)-' } },
        },
      },
    },
  },
  'Microsoft.Authorization/roleAssignments': {
    apiVersion: '2022-04-01',
    required: ['roleDefinitionId', 'principalId'],
    properties: {
      roleDefinitionId: text,
      principalId: text,
      principalType: { enum: ['ServicePrincipal', 'User', 'Group'] },
    },
  },
  'Microsoft.OperationalInsights/workspaces/savedSearches': {
    apiVersion: '2020-08-01',
    required: ['category', 'displayName', 'query'],
    properties: {
      category: text,
      displayName: text,
      functionAlias: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
      functionParameters: text,
      query: text,
      version: { const: 2 },
    },
  },
  'Microsoft.OperationalInsights/workspaces/providers/alertRules': {
    apiVersion: '2023-11-01',
    required: [
      'displayName',
      'enabled',
      'query',
      'queryFrequency',
      'queryPeriod',
      'severity',
      'tactics',
      'techniques',
      'suppressionDuration',
      'suppressionEnabled',
      'triggerOperator',
      'triggerThreshold',
    ],
    properties: {
      displayName: text,
      description: text,
      enabled: { type: 'boolean' },
      query: { type: 'string', minLength: 1, maxLength: 10_000 },
      queryFrequency: duration,
      queryPeriod: duration,
      tactics: {
        type: 'array',
        minItems: 1,
        items: {
          enum: [
            'InitialAccess',
            'Execution',
            'Persistence',
            'PrivilegeEscalation',
            'DefenseEvasion',
            'CredentialAccess',
            'Discovery',
            'LateralMovement',
            'Collection',
            'CommandAndControl',
            'Exfiltration',
            'Impact',
          ],
        },
      },
      techniques: { type: 'array', minItems: 1, items: { type: 'string', pattern: '^T\\d{4}$' } },
      severity: { enum: ['High', 'Medium', 'Low', 'Informational'] },
      suppressionDuration: duration,
      suppressionEnabled: { type: 'boolean' },
      triggerOperator: { enum: ['GreaterThan', 'LessThan', 'Equal', 'NotEqual'] },
      triggerThreshold: { type: 'integer', minimum: 0, maximum: 10_000 },
      eventGroupingSettings: {
        type: 'object',
        properties: { aggregationKind: { enum: ['SingleAlert', 'AlertPerResult'] } },
      },
      entityMappings: {
        type: 'array',
        items: {
          type: 'object',
          required: ['entityType', 'fieldMappings'],
          properties: {
            entityType: { enum: ['Account', 'IP', 'Host', 'URL', 'CloudApplication'] },
            fieldMappings: {
              type: 'array',
              minItems: 1,
              items: {
                type: 'object',
                required: ['identifier', 'columnName'],
                properties: { identifier: { enum: ['Name', 'FullName', 'Address', 'HostName'] } },
              },
            },
          },
        },
      },
    },
  },
  'Microsoft.Insights/workbooks': {
    apiVersion: '2022-04-01',
    required: ['displayName', 'serializedData', 'category'],
    properties: {
      displayName: text,
      serializedData: { type: 'string', contentMediaType: 'application/json' },
      category: { const: 'sentinel' },
      sourceId: text,
      version: text,
    },
  },
};

const kinds: Readonly<Record<string, string>> = {
  'Microsoft.OperationalInsights/workspaces/providers/alertRules': 'Scheduled',
  'Microsoft.Insights/workbooks': 'shared',
};
const regional = /^Microsoft\.Insights\//;

/** The schema of the whole template. */
export const templateSchema = {
  type: 'object',
  required: ['$schema', 'contentVersion', 'parameters', 'resources', 'outputs'],
  additionalProperties: false,
  properties: {
    $schema: {
      const: 'https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#',
    },
    contentVersion: { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+\\.\\d+$' },
    parameters: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['type', 'metadata'],
        properties: { type: { enum: ['string', 'int', 'bool', 'object', 'array'] } },
      },
    },
    resources: {
      type: 'array',
      items: {
        type: 'object',
        oneOf: Object.entries(shapes).map(([type, { apiVersion, required, properties }]) => ({
          required: [
            ...['type', 'apiVersion', 'name', 'properties'],
            ...(type in kinds ? ['kind'] : []),
            ...(regional.test(type) ? ['location'] : []),
          ],
          additionalProperties: false,
          properties: {
            type: { const: type },
            apiVersion: { const: apiVersion },
            name: text,
            location: text,
            kind: { const: kinds[type] ?? '' },
            scope: text,
            condition: { type: 'string', pattern: '^\\[.+\\]$' },
            dependsOn: { type: 'array', items: text },
            properties: { type: 'object', required, additionalProperties: false, properties },
          },
        })),
      },
    },
    outputs: {
      type: 'object',
      required: ['endpoint', 'dcr_immutable_id', 'stream_name'],
      additionalProperties: {
        type: 'object',
        required: ['type', 'value'],
        properties: { type: { const: 'string' }, value: text },
      },
    },
  },
};
