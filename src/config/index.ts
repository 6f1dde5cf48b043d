// The entry point of src/config: text to Config, with errors that name the setting; and the kinds of sources, sinks
// and formats that a config can name.

export { sinks } from '../../connectors/index.ts';
export { sources } from '../../connectors/sources/index.ts';
export { formats, formatsOf } from '../../formats/index.ts';
export { type UpstreamEnd, type UpstreamSettings, upstreamEnd } from '../upstream/index.ts';
export { type CommandValues, commandValues, type SecretCommand } from './commands.ts';
export { digestOf } from './companies.ts';
export {
  type Config,
  ConfigError,
  flawText,
  loadConfig,
  parseConfig,
  readConfig,
  reloadConfig,
} from './config.ts';
export type { Path } from './flaws.ts';
export { keptSha256 } from './kept.ts';
export { placeholderWord } from './placeholders.ts';
export { prepareCommands } from './prepare-commands.ts';
export { shownSetting, whyUnreadable } from './references.ts';
export { namePattern, sourceBlock } from './shape.ts';
export { inShards, ofShard, shardKeyOf, shardMates, shardOfStream, shardsOf } from './shards.ts';
export type { ConfiguredSource } from './sources.ts';
export { stateDirOf } from './state-dir.ts';
export { type ClassChange, classChange, classChangeText } from './succession.ts';
