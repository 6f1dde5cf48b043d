// `sluice archive keys rotate`: transfers an archive to another key. It needs the config and the state of the archive's
// writer, while that process is stopped: only they have the entries that are not signed yet.

import { z } from 'zod';
import { type BucketSettings, openStore, signerOf, signingSettings } from '../../archive/index.ts';
import { rotateKey } from '../../archive/operate.ts';
import { type Config, inShards, loadConfig } from '../../config/index.ts';
import { ExportError, type Json, Secret, UsageError } from '../../contracts/index.ts';
import { changeState, hasState, lookInto, takeLock } from '../../hold/index.ts';
import { ownJourney } from '../../operator/index.ts';
import { systemClock } from '../../tools/index.ts';
import { type CommandDeps, configOption, defineCommand } from '../shared/command.ts';
import { refuseUnknown } from '../shared/typed.ts';
import { signingKeyGiven } from './given.ts';

/** Another process's claim is valid for so long; a claim by our own state is ignored. */
const staleMs = 30_000;

/** The settings that the sink's own definition parses. */
const settingsShape = z.object({
  location: z.string(),
  ...signingSettings.shape,
  region: z.string().optional(),
  endpoint: z.string().optional(),
  credentials: z.custom<BucketSettings['credentials']>().optional(),
  timeout: z.number().optional(),
  tls: z.custom<BucketSettings['tls']>().optional(),
  proxy: z.instanceof(Secret).optional(),
});

/** Hands an archive on to another key. */
export const rotateKeys = defineCommand({
  name: 'rotate',
  about: 'replace the key of an archive, by an entry that both keys sign',
  options: {
    config: configOption,
    to: {
      value: 'file',
      about: 'the new key, as written by keys new, or a config that names it for this archive',
      needed: true,
    },
    sink: { value: 'name', about: 'sink of the archive (required if the config has several)' },
  },
  more: `No process may run with the config meanwhile. After the rotation, set the new key as signing_key. If a command signs,
name a config (*.yaml) that differs only in that. If the rotation was interrupted, run it again with the same two keys.`,
  async run({ config: file, to, sink: requested }, { env, out, err }) {
    const whole = await loadConfig(file, { env });
    let isAny = false;
    for (const config of inShards(whole)) {
      const isRotated = await rotated(config, whole, { to, requested }, { env, out, err });
      isAny ||= isRotated;
    }
    if (isAny) return 0;
    throw new ExportError('sink_refused', 'rotating the key: nothing is signed yet', {
      next: 'Name the new key as signing_key at once: there is nothing to hand on.',
    });
  },
});

/** False: nothing is signed yet. With several shards the keys of the others are rotated all the same. */
async function rotated(
  config: Config,
  whole: Config,
  { to, requested }: { readonly to: string; readonly requested: string | undefined },
  { env, out, err }: Pick<CommandDeps, 'env' | 'out' | 'err'>,
): Promise<boolean> {
  const { name, settings } = archiveOf(config, requested);
  const isConfig = /\.ya?ml$/.test(to);
  const next = isConfig
    ? signerOf(archiveOf(await loadConfig(to, { env }), requested).settings)
    : signingKeyGiven(to);
  const rotate = async (
    spool: string,
    mark: Json | null,
    remember: (mark: Json) => Promise<void>,
  ) =>
    await rotateKey(
      {
        store: await openStore(settings.location, settings),
        ...{ clock: systemClock(), staleMs, signer: signerOf(settings), shard: settings.shard },
        ...{ spool, mark, remember },
      },
      next,
    );
  const size = await withMark(name, config, whole, rotate);
  if (size === null) {
    err(`${name}: nothing in ${settings.location} is signed yet, so there is nothing to hand on`);
    return false;
  }
  err(`${name}: its ${size} entries are signed by both keys, and later entries by the new one`);
  err(`now name it in the config${isConfig ? `, as ${to} does` : `: signing_key: \${file:${to}}`}`);
  out(next.verifier.vkey);
  return true;
}

/** Does work with the state's identity and the mark of an archive there, while no process works with the state. */
async function withMark<T>(
  sink: string,
  config: Config,
  whole: Config,
  work: (spool: string, mark: Json | null, remember: (mark: Json) => Promise<void>) => Promise<T>,
): Promise<T> {
  const { state } = config;
  const { dir } = state;
  if (state.kafka !== null) {
    return await ownJourney(config, whole, async ({ spool }) => {
      const { mark } = await spool.progress(sink);
      const remember = (mark: Json) => spool.acknowledge(sink, { position: 0, mark });
      return await work(spool.numbering.spool, mark, remember);
    });
  }
  if (!hasState(dir)) throw new UsageError(`nothing has run with this config: ${dir} is empty`);
  using _lock = takeLock(dir);
  const clock = systemClock();
  const spool = lookInto(dir, '', (store) => store.id);
  const mark = lookInto(dir, null, (store) => store.progress(sink).mark);
  return await work(spool, mark, async (mark) =>
    changeState(state, (store) => store.acknowledge(sink, { position: 0, mark }, clock.now())),
  );
}

/** The archive of that name, or the only one. */
function archiveOf({ sinks }: Config, requested: string | undefined) {
  const archives = Object.entries(sinks).filter(([, { settings }]) => settings.type === 'archive');
  const names = archives.map(([name]) => name);
  refuseUnknown('sink', requested, names);
  const found = archives.filter(([name]) => requested === undefined || name === requested);
  const [[name, sink] = []] = found;
  if (found.length > 1) throw new UsageError(`which archive? --sink ${names.join(', --sink ')}`);
  if (name === undefined || sink === undefined) throw new UsageError('the config has no archive');
  return { name, settings: settingsShape.parse(sink.settings) };
}
