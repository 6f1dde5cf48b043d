// The JSON Schema of a config, for editors. It is generated from the blocks that parse the file, for every source, sink
// and format, so an editor accepts exactly what sluice accepts.

import { z } from 'zod';
import { sinks } from '../../connectors/index.ts';
import { sources } from '../../connectors/sources/index.ts';
import { formats, formatsOf } from '../../formats/index.ts';
import type { SinkDefinition } from '../contracts/config.ts';
import {
  formatBlock,
  logBlock,
  maskBlock,
  namePattern,
  routeBlock,
  shutdownBlock,
  sinkBlock,
  sourceBlock,
  stateBlock,
  statusBlock,
  upstreamBlock,
  watchBlock,
} from './shape.ts';

type FormatBlocks = ReadonlyMap<string, ReturnType<typeof formatBlock>>;

function sinkBlockWhole(definition: SinkDefinition, blocks: FormatBlocks) {
  if (definition.takes === 'pages') return sinkBlock(definition);
  const types = formatsOf(definition);
  const carried = types.flatMap((type) => blocks.get(type) ?? []);
  const format = z
    .union([z.enum(types), z.discriminatedUnion('type', some(carried))])
    .optional()
    .describe(`format of the events: its type, or its settings; ${definition.usualFormat}`);
  return sinkBlock(definition).extend({ format });
}

function some<T>(list: readonly T[]): readonly [T, ...T[]] {
  const [first, ...rest] = list;
  if (first === undefined) throw new RangeError('a list of connectors or formats is empty');
  return [first, ...rest];
}

function named<T extends z.ZodType>(block: T) {
  return z.record(z.string().regex(namePattern), block);
}

function configBlock(blocks: FormatBlocks) {
  return z
    .strictObject({
      state: stateBlock,
      upstreams: named(upstreamBlock).describe('the APIs to read from, each with a credential'),
      sources: named(z.discriminatedUnion('type', some(sources.map(sourceBlock)))).describe(
        'what is read',
      ),
      sinks: named(
        z.discriminatedUnion('type', some(sinks.map((sink) => sinkBlockWhole(sink, blocks)))),
      ).describe('sink type'),
      routes: z
        .array(routeBlock)
        .optional()
        .describe(
          'which sink gets which events of which source; default: every source to every sink',
        ),
      mask: maskBlock,
      watch: watchBlock,
      status: statusBlock,
      shutdown: shutdownBlock,
      log: logBlock,
    })
    .describe('Config of sluice, for `sluice run -c FILE`');
}

const reference = {
  type: 'string',
  pattern: '\\$\\{(env|file|exec):.+\\}',
  description: 'a reference: ${env:NAME}, ${env:NAME:-default}, ${file:/path} or ${exec:COMMAND}',
} as const;

/** JSON Schema (draft 2020-12) of the config file; `config/schema.json` is its committed copy. */
export function configSchema(): Readonly<Record<string, unknown>> {
  const blocks = new Map(formats.map((format) => [format.type, formatBlock(format)]));
  const formatNames = new Map<unknown, string>(
    Array.from(blocks, ([type, block]) => [block, `format_${type}`]),
  );
  const definitions: Record<string, unknown> = { reference };
  const { $schema, ...schema } = z.toJSONSchema(configBlock(blocks), {
    io: 'input',
    target: 'draft-2020-12',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema, path }) => {
      withoutFormat(jsonSchema);
      if (path.at(-1) !== 'propertyNames') allowReferences(jsonSchema);
      const name = formatNames.get(zodSchema);
      if (name !== undefined) hoist(jsonSchema, name, definitions);
    },
  });
  return { $schema, title: 'sluice config', ...schema, $defs: definitions };
}

/**
 * Keeps patterns only: a strict validator such as Ajv rejects unknown formats, and zod adds some of its own
 * (`starts_with`).
 */
function withoutFormat(schema: Record<string, unknown>): void {
  if (schema.format === 'uri') schema.pattern ??= '^[A-Za-z][A-Za-z0-9+.-]*:';
  delete schema.format;
}

/** Replaces a schema that occurs often by a reference. */
function hoist(
  schema: Record<string, unknown>,
  name: string,
  definitions: Record<string, unknown>,
): void {
  definitions[name] = { ...schema };
  for (const key of Object.keys(schema)) delete schema[key];
  schema.$ref = `#/$defs/${name}`;
}

const alsoReferences = new Set(['integer', 'number', 'boolean']);

/** Allows a `${…}` reference wherever a number, a flag or a text with a form is expected. */
function allowReferences(schema: Record<string, unknown>): void {
  const { type } = schema;
  const formed = type === 'string' && ('pattern' in schema || 'enum' in schema);
  if (typeof type !== 'string' || !(alsoReferences.has(type) || formed)) return;
  const { description, default: byDefault, ...plain } = schema;
  for (const key of Object.keys(plain)) delete schema[key];
  schema.anyOf = [plain, { $ref: '#/$defs/reference' }];
}
