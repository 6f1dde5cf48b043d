// `sluice receipt`: shows a third party how far delivery to a sink is complete, and which events are missing. It reads
// the state directory, also while another process runs, and Kafka if the state is there and no process of this machine
// has it. If the config has an archive, its key signs the receipt as a signed note (https://c2sp.org/signed-note),
// which anyone with the public key can check without sluice. Invariants: the text claims no more than watch/up-to.ts
// proves, and its first line is no archive's name, so that no receipt can pass for a checkpoint.

import { openNote, type Signer, signerOf, signingSettings, signNote } from '../archive/index.ts';
import type { Config } from '../config/index.ts';
import { errorText } from '../contracts/index.ts';
import { planToLook, type WholePlan } from '../run/index.ts';
import { cleanText } from '../tools/index.ts';
import { bytesGiven, keyOption, keysGiven } from './archive/given.ts';
import {
  type CommandDeps,
  type CommandGroup,
  configOption,
  defineCommand,
} from './shared/command.ts';
import { companyOption, countsOf, planOf, refuseUnknownCompany } from './shared/company.ts';
import { type PartAtWork, partsAtWork } from './shared/parts.ts';
import { isReceipt, receiptOf, receiptText } from './shared/receipt.ts';
import { refuseUnknown } from './shared/typed.ts';

const lengthMax = 500;

const print = defineCommand({
  name: 'print',
  about: 'show how far delivery to a sink is complete',
  options: {
    config: configOption,
    sink: { value: 'name', about: 'sink of the receipt', needed: true },
    json: { about: 'as JSON, with the signed note in it' },
    company: companyOption,
  },
  async run({ config: file, sink, json, company }, deps) {
    let whole = true;
    const parts = await Promise.all(
      partsAtWork(file, deps).map(async (part) => ({ part, plan: await planToLook(part.config) })),
    );
    refuseUnknownCompany(
      company,
      parts.map(({ plan }) => plan),
    );
    for (const { part, plan } of parts) {
      const own = planOf(plan, company);
      if (own.sources.length === 0 && parts.length > 1) continue;
      whole = (await report({ part, plan: own }, { sink, json, company }, deps)) && whole;
    }
    return whole ? 0 : 1;
  },
});

/** Prints the facts about a sink in one part; true: delivery is complete. */
async function report(
  { part, plan }: { readonly part: PartAtWork; readonly plan: WholePlan },
  {
    sink,
    json,
    company,
  }: {
    readonly sink: string;
    readonly json: boolean | undefined;
    readonly company: string | undefined;
  },
  { out, err }: CommandDeps,
): Promise<boolean> {
  const { config, operator } = part;
  refuseUnknown('sink', sink, Object.keys(config.sinks));
  const { state, missing, counts } = await operator.status((stored) => {
    const facts = stored.facts();
    const position = facts.sinks.get(sink)?.position ?? 0;
    return {
      state: facts,
      missing: stored.missing,
      counts:
        company === undefined
          ? null
          : countsOf(stored, company, new Map([[sink, position]])).get(sink),
    };
  });
  const reported = receiptOf(sink, {
    ...{ config, plan, state },
    now: Date.now(),
    ...(company !== undefined && counts && { company: { id: company, ...counts } }),
  });
  const text = receiptText(reported);
  const note = await signed(text, config, err);
  if (json) out(JSON.stringify({ ...reported, note }, null, 2));
  else for (const line of (note ?? text).trimEnd().split('\n')) out(line);
  if (note === null) err('not signed: the config has no archive whose key signs here');
  if (missing !== '') err(cleanText(`nothing is known${missing}`, lengthMax));
  return reported.whole;
}

const check = defineCommand({
  name: 'check',
  about: 'check a printed receipt with a key only',
  arguments: { file: { about: 'the printed receipt' } },
  options: { key: keyOption },
  async run({ file, key }, { out, err }) {
    try {
      const { text, by } = openNote(bytesGiven('file', file), keysGiven(key));
      if (!isReceipt(text)) throw new SyntaxError('it is signed, and is no receipt');
      out(`true: signed by ${by.map(({ vkey }) => vkey).join(', ')}`);
      for (const line of text.trimEnd().split('\n')) out(`  ${cleanText(line, lengthMax)}`);
      return 0;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      err(`FALSE: ${cleanText(error.message, lengthMax)}`);
      return 1;
    }
  },
});

/** Prints a receipt, or checks one. */
export const receipt: CommandGroup = {
  name: 'receipt',
  about: 'show how far delivery to a sink is complete; signed if there is an archive',
  commands: [check],
  alone: print,
  more: `Exit code 0: no event waits. 1: an event waits or was refused, or the sink has no position yet.`,
};

/** The text signed by each archive of the config whose key is available here; null: there is none. */
async function signed(
  text: string,
  { sinks }: Config,
  err: CommandDeps['err'],
): Promise<string | null> {
  const signers: Signer[] = [];
  for (const [name, { settings }] of Object.entries(sinks)) {
    if (settings.type !== 'archive') continue;
    try {
      const { verifier, sign } = signerOf(signingSettings.parse(settings));
      const signature = await sign(Buffer.from(text));
      signers.push({ verifier, sign: async () => signature });
    } catch (error) {
      const why = `the key of the archive ${name} does not sign: ${errorText(error)}`;
      err(cleanText(why, lengthMax));
    }
  }
  return signers.length === 0 ? null : await signNote(text, signers);
}
