// `node deploy/siem/build.ts`: writes the content for QRadar, Graylog, Google SecOps and Datadog from the rules in
// `sigma/rules`. A test compares the files with what this makes of the present rules.

import { mkdirSync, writeFileSync } from 'node:fs';
import { datadogFiles } from './datadog/build.ts';
import { graylogFiles } from './graylog/build.ts';
import { qradarFiles } from './qradar/build.ts';
import { secopsFiles } from './secops/build.ts';

/** All files by their path below `deploy/siem`. */
export function builtFiles(): ReadonlyMap<string, string> {
  return new Map([...qradarFiles(), ...graylogFiles(), ...secopsFiles(), ...datadogFiles()]);
}

if (import.meta.main) {
  for (const [path, text] of builtFiles()) {
    const file = new URL(path, import.meta.url);
    mkdirSync(new URL('./', file), { recursive: true });
    writeFileSync(file, text);
  }
}
