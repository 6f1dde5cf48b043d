// `sluice cluster import` and `export`: moves a state from a SQLite database into Kafka, and back.

import { dirname } from 'node:path';
import { loadConfig } from '../../config/index.ts';
import { kafkaOf } from '../../operator/index.ts';
import { type CarriedState, exportState, importState } from '../../run/process.ts';
import { counted } from '../../terminal/index.ts';
import { systemClock } from '../../tools/index.ts';
import { logForm, openLog } from '../../watch/log.ts';
import { type CommandDeps, configOption, defineCommand } from '../shared/command.ts';

/** Into Kafka. */
export const importCommand = defineCommand({
  name: 'import',
  about: 'move the state from a SQLite database into Kafka, if Kafka has none',
  options: {
    config: configOption,
    from: { value: 'dir', about: 'directory of sluice.db; default: state.dir' },
  },
  async run({ config: file, from }, deps) {
    const { config, kafka, dir, tools } = await opened(file, deps);
    const place = from ?? dir;
    const carried = await importState(config, kafka, { dir: place, ...tools });
    deps.out(`${carriedText(carried)} from ${place} into Kafka, as ${kafka.prefix}`);
    deps.out(`the database in ${place} is left as it is, and is older from the next start on`);
    return 0;
  },
});

/** Out of Kafka. */
export const clusterExport = defineCommand({
  name: 'export',
  about: 'move the state from Kafka into a SQLite database',
  options: {
    config: configOption,
    to: { value: 'dir', about: 'target directory of sluice.db; default: state.dir' },
  },
  async run({ config: file, to }, deps) {
    const { config, kafka, dir, tools } = await opened(file, deps);
    const place = to ?? dir;
    const carried = await exportState(config, kafka, { dir: place, ...tools });
    deps.out(`${carriedText(carried)} from Kafka, as ${kafka.prefix}, into ${place}`);
    if (carried.aside !== null) deps.out(`the database that was there is now ${carried.aside}`);
    deps.out(
      'remove state.kafka from the config before the next start; the state in Kafka is older then',
    );
    return 0;
  },
});

async function opened(file: string, { env }: CommandDeps) {
  const config = await loadConfig(file, { env });
  const log = await openLog({ level: 'warn', form: logForm(process.stderr) });
  // The cache of the state in Kafka is a directory within state.dir.
  const dir = dirname(config.state.dir);
  return { config, kafka: kafkaOf(config), dir, tools: { log, clock: systemClock() } };
}

function carriedText({ streams, pages }: CarriedState): string {
  return `${counted(streams, 'stream')} and ${counted(pages, 'page')} moved`;
}
