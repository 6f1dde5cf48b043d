// Fills in the facts that the code has: `npx node docs/generate.ts`. A generated part of a page is between `<!--
// generated: NAME -->` and `<!-- end -->`; all else is written by hand. Invariant: filling a fresh page changes
// nothing, so that a test can detect a stale one.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cefKeyTable } from './generate/cef.ts';
import { commandSections } from './generate/commands.ts';
import { connectorPages, factsOf, sampleOf, settingsOf } from './generate/connectors.ts';
import { ecsFieldTable } from './generate/ecs.ts';
import { everyFile } from './generate/files.ts';
import { eventTables } from './generate/logging.ts';
import {
  growthMeasured,
  jobsMeasured,
  latencyMeasured,
  peersMeasured,
} from './generate/measured.ts';
import { classesTable, everyName, namesTable, recordSample } from './generate/ocsf.ts';
import { morePages, type Page, pages } from './generate/page.ts';
import { sentenceTable } from './generate/sentences.ts';
import { blockTable, sharedTable } from './generate/settings-table.ts';

/** What each part of that name holds; the word behind a name says of what. */
const parts: Readonly<Record<string, (page: Page, of: string) => string>> = {
  facts: factsOf,
  settings: settingsOf,
  sample: sampleOf,
  block: (_, of) => blockTable(of),
  shared: (_, of) => sharedTable(of),
  commands: commandSections,
  'log events': eventTables,
  'cef keys': cefKeyTable,
  'ecs fields': ecsFieldTable,
  classes: classesTable,
  names: namesTable,
  'every name': everyName,
  record: recordSample,
  sentences: sentenceTable,
  'every file': everyFile,
  'connector pages': connectorPages,
  'more pages': morePages,
  'jobs measured': jobsMeasured,
  'peers measured': peersMeasured,
  'growth measured': growthMeasured,
  'latency measured': latencyMeasured,
};

// No part reaches into the next one, whatever became of its end.
const generated =
  /(<!-- generated: ([a-z ]+?)(?: `(\w+)`)? -->\n)(?:(?!<!-- generated)[\s\S])*?(<!-- end -->)/g;

/** The page with its generated parts as they are now. Throws if it names a part that does not exist. */
export function filled(page: Page): string {
  return page.text.replace(generated, (_, begin: string, name: string, of = '', end: string) => {
    const part = parts[name];
    if (part === undefined) throw new Error(`${page.path}: there is no generated part "${name}"`);
    return `${begin}${part(page, of).trim()}\n${end}`;
  });
}

if (import.meta.main) {
  for (const page of pages()) {
    const text = filled(page);
    if (text !== page.text) writeFileSync(join(import.meta.dirname, page.path), text);
  }
}
