// A move between two forms of the sandbox's ledger, for tests of each kind of source: the sandbox plants what one form alone
// shows or shows otherwise, and a file sink has what was delivered.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ListBehaviour,
  type Sandbox,
  type SandboxOptions,
  startSandbox,
} from '../../src/sandbox/sandbox.ts';
import { type RunningSluice, runHere, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

/** A source in a config. */
type Source = Readonly<Record<string, unknown>>;

/** One move. */
export interface Forms {
  /** Sources by name, of upstreams `earlier`, `unified` or `services`; all but successors run first. */
  readonly old: Readonly<Record<string, Source>>;
  /** Successors, and sources that they need, by name. */
  readonly new: Readonly<Record<string, Source>>;
  /** Name of the successor that is looked at. */
  readonly successor: string;
  readonly sandbox?: SandboxOptions;
  /** Upstreams in addition to the sandbox's. */
  readonly upstreams?: object;
  /** Keys at the top of the config. */
  readonly top?: object;
}

/** What was delivered of one record or change. */
export interface Delivered {
  /** The source. */
  readonly from: string;
  /** Event code and entity, or the id of a record. */
  readonly key: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/** What `succession --json` reports of a pair. */
export interface Report {
  readonly phase: string;
  readonly matched: number;
  readonly known_before: number;
  readonly waiting: number;
  readonly brake: unknown;
  readonly only_old: { readonly count: number; readonly examples: readonly string[] };
  readonly only_new: { readonly count: number; readonly examples: readonly string[] };
  readonly differing: { readonly count: number; readonly examples: readonly string[] };
  readonly fields: readonly { readonly path: string; readonly count: number }[];
  readonly only_old_fields: Readonly<Record<string, number>>;
  readonly only_new_fields: Readonly<Record<string, number>>;
}

/** The running move. */
export interface TwoForms {
  readonly dir: string;
  readonly config: string;
  readonly sandbox: Sandbox;
  /** Writes the config: the old sources alone, or both. */
  write(isPair: boolean): void;
  /** Resolves when it holds the state, so that commands reach it. */
  run(): Promise<RunningSluice>;
  /** How lists behave from now on, in addition to what was said before. */
  behave(...lists: readonly ListBehaviour[]): void;
  delivered(): readonly Delivered[];
  /** Resolves when these were delivered, from any source. */
  has(...keys: readonly string[]): Promise<void>;
  report(): Promise<Report>;
  reported(isSo: (report: Report) => boolean): Promise<Report>;
  turn(command: 'cutover' | 'rollback', ...words: readonly string[]): Promise<string>;
}

/** Starts the sandbox and writes the config of the old sources. */
export async function twoForms(forms: Forms): Promise<TwoForms> {
  const dir = tempDir();
  const sandbox = await startSandbox({
    ...{ events: 40, rate: 0, firewallEveryS: 0, changeEvery: 0, earlier: {} },
    ...forms.sandbox,
  });
  afterThisTest(() => sandbox.close());
  const [config, out] = [join(dir, 'sluice.yaml'), join(dir, 'events.ndjson')];
  const upstreams = { ...upstreamsOf(sandbox), ...forms.upstreams };
  const behaviours: ListBehaviour[] = [];
  const write = (isPair: boolean) => {
    const text = {
      ...{ state: { dir: join(dir, 'state') }, upstreams },
      sources: isPair ? { ...forms.old, ...forms.new } : forms.old,
      sinks: { disk: { type: 'file', path: out } },
      ...forms.top,
    };
    writeFileSync(config, JSON.stringify(text));
  };
  write(false);
  const delivered = () => deliveredIn(out);
  const report = async () => {
    const { stdout } = await runHere(['succession', '-c', config, '--json']);
    const { sources } = JSON.parse(stdout) as { sources: (Report & { successor: string })[] };
    return sources.find(({ successor }) => successor === forms.successor) as Report;
  };
  return {
    ...{ dir, config, sandbox, write, delivered, report },
    async run() {
      const sluice = startSluice(['run', '-c', config]);
      await sluice.waitForLine('"running"');
      return sluice;
    },
    behave(...lists) {
      behaviours.push(...lists);
      sandbox.control.setFaults({ lists: behaviours });
    },
    async has(...keys) {
      const missing = () => new Set(keys).difference(new Set(delivered().map(({ key }) => key)));
      const what = () =>
        `${[...missing()].join(', ')} to be delivered, beside ${delivered()
          .slice(-20)
          .map(({ key }) => key)
          .join(', ')}`;
      await waitUntil(() => missing().size === 0, { what });
    },
    async reported(isSo) {
      let last: Report | undefined;
      const what = () => `the report: ${JSON.stringify(last)}`;
      return await waitUntil(
        async () => {
          last = await report();
          return last !== undefined && isSo(last) ? last : null;
        },
        { what, everyMs: 200 },
      );
    },
    async turn(command, ...words) {
      const done = await runHere(['succession', command, forms.successor, '-c', config, ...words]);
      return `${done.exitCode} ${done.stdout}${done.stderr}`;
    },
  };
}

/** Keys that were delivered more than once. */
export function repeatedIn(delivered: readonly Delivered[]): readonly string[] {
  const keys = delivered.map(({ key }) => key);
  return [...new Set(keys.filter((key, at) => keys.indexOf(key) !== at))];
}

function upstreamsOf({ credentials, ...urls }: Sandbox): object {
  const { clientId, clientSecret, apiKey } = credentials;
  const usual = { allow_http: true, ends: 'never' };
  const client = { client_id: clientId, client_secret: clientSecret };
  const services = {
    ...{ api: 'services', base_url: urls.servicesBaseUrl, companies: ['1001', '1002'], ...usual },
    auth: { ...client, scope: 'urn:sandbox:api:public' },
  };
  return {
    unified: {
      ...{ api: 'unified', base_url: urls.unifiedBaseUrl, ...usual },
      auth: { ...client, scope: 'events:read' },
    },
    earlier: {
      ...{ api: 'unified', base_url: urls.earlierBaseUrl, auth: { api_key: apiKey }, ...usual },
    },
    services,
  };
}

/** Events of sluice itself are none. */
function deliveredIn(file: string): readonly Delivered[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.flatMap((line) => {
    const event = JSON.parse(line);
    const { log_name: name, original_event_uid: id, event_code: code } = event.metadata;
    if (name === 'sluice') return [];
    // Both forms name a kind of entity in their own words.
    const [, change = code] = /^\w+\.(\w+)$/.exec(code ?? '') ?? [];
    const isChange = event.unmapped?.change !== undefined || event.entity?.uid !== undefined;
    const key = id === undefined && isChange ? `${change} ${event.entity?.uid}` : `${id}`;
    return [{ from: name, key, event }];
  });
}
