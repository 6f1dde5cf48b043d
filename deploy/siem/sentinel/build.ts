// `node deploy/siem/sentinel/build.ts`: writes the parsers, and one ARM template with the table, the data collection rule and
// endpoint, the functions, the analytic rules and a workbook. A test compares the files with what this makes of the present
// sources, and checks every query with the parser of Kusto.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { asimParsers, asimSchemas, type KqlFunction } from './asim.ts';
import { template } from './template.ts';

const here = new URL('./', import.meta.url);

/** All functions of the workspace. */
export function kqlFunctions(): readonly KqlFunction[] {
  const text = readFileSync(new URL('SluiceEvents.kql', here), 'utf8');
  const body = text.replace(/^\/\/.*\n/gm, '').trim();
  return [{ name: 'SluiceEvents', parameters: '', body }, ...asimSchemas.flatMap(asimParsers)];
}

/** All files that are made, by path. */
export function sentinelFiles(): ReadonlyMap<string, string> {
  const parsers = kqlFunctions().filter(({ name }) => name !== 'SluiceEvents');
  return new Map([
    ...parsers.map(
      ({ name, parameters, body }) =>
        [`parsers/${name}.kql`, `// Parameters: ${parameters}\n${body}\n`] as const,
    ),
    ['azuredeploy.json', `${JSON.stringify(template(kqlFunctions()), null, 2)}\n`],
  ]);
}

if (import.meta.main) {
  mkdirSync(new URL('parsers/', here), { recursive: true });
  for (const [path, text] of sentinelFiles()) writeFileSync(new URL(path, here), text);
}
