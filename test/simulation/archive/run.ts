// A world of an archive and an attacker, by a seed: upstream sends, a process archives, an operator sets holds and makes
// requests, days pass, states are lost; between any two calls of the store the attacker, who has no key, changes what he
// likes. In the end `verify` judges (oracle.ts).

import { keyOfLog, signerOfLog } from '../../../src/archive/log-name.ts';
import { parseSigningKey, signingKeyText } from '../../../src/archive/note.ts';
import { Random, saltOf } from '../../../src/sandbox/random.ts';
import type { Tell, Verdict } from '../verdict.ts';
import { Attacker, type Focus, focuses } from './attacker.ts';
import { HostileStore } from './hostile-store.ts';
import { Operator } from './operator.ts';
import { judge } from './oracle.ts';
import { Process } from './process.ts';
import type { Granted, Rules } from './truth.ts';
import { Upstream } from './upstream.ts';

const hour = 3_600_000;
const day = 24 * hour;
const name = 'archive.test';
const own = parseSigningKey(signingKeyText(name, Buffer.alloc(32, 1)));
const operatorKey = parseSigningKey(signingKeyText('operator.example', Buffer.alloc(32, 7)));

function traitsOf(seed: number) {
  const random = new Random(seed, saltOf('archive traits'));
  const focus = random.pick(focuses);
  return {
    focus,
    accepts: random.chance(0.2),
    bodiesMs: random.chance(0.5) ? 30 * day : null,
    hasLake: focus === 'lake' || random.chance(0.15),
    shards: random.chance(0.1) ? 2 : 1,
    steps: 4 + random.below(10),
    /** Pages at once, in some worlds enough for a full tile. */
    burst: random.chance(0.003) ? 280 : 3,
    attacks: random.chance(0.06) ? 0 : 1 + random.below(8),
  };
}

/** How often something happens in a step; what is left is for the operator. */
const chances = {
  any: { pages: 0.45, restart: 0.12, loss: 0.08, time: 0.08, lake: 0.08 },
  opening: { pages: 0.45, restart: 0.15, loss: 0.3, time: 0.03, lake: 0 },
  holds: { pages: 0.4, restart: 0.05, loss: 0.03, time: 0.12, lake: 0.02 },
  erasures: { pages: 0.5, restart: 0.05, loss: 0.03, time: 0.02, lake: 0.05 },
  lake: { pages: 0.4, restart: 0.05, loss: 0.03, time: 0.1, lake: 0.2 },
} as const satisfies Record<Focus, unknown>;

/** What happens next; null: the operator does something. */
function stepOf(focus: Focus, random: Random): keyof (typeof chances)['any'] | null {
  let left = random.next();
  for (const [what, chance] of Object.entries(chances[focus])) {
    left -= chance;
    if (left < 0) return what as keyof (typeof chances)['any'];
  }
  return null;
}

/** One world. */
export async function runArchive(seed: number, report: Tell = () => undefined): Promise<Verdict> {
  const traits = traitsOf(seed);
  const random = new Random(seed, saltOf('archive course'));
  const findings: string[] = [];
  const clock = { now: Date.UTC(2026, 0, 5) };
  const attacker = new Attacker(new Random(seed, saltOf('archive attacker')), {
    ...{ budget: traits.attacks, focus: traits.focus, tell: report },
    now: () => clock.now,
  });
  const archives = Array.from({ length: traits.shards }, (_, i) => {
    const shard = traits.shards === 1 ? undefined : i;
    const signer = signerOfLog(own, { shard, origin: null });
    const origin = signer.verifier.name;
    const granted: Granted[] = [];
    const rules: Rules = {
      upstream: new Upstream(new Random(seed, i, saltOf('archive upstream'))),
      ...{ origin, accepts: traits.accepts, bodiesMs: traits.bodiesMs, granted },
      keys: new Set([own, operatorKey].map(({ verifier }) => keyOfLog(verifier, origin).vkey)),
      now: () => clock.now,
      finding: (text) => {
        if (findings.length < 50) findings.push(text);
        report(`FINDING ${text}`);
      },
    };
    // An operator's key is known by the name that it has.
    (rules.keys as Set<string>).add(operatorKey.verifier.vkey);
    const store = new HostileStore();
    const process = new Process({
      ...{ store, signer: own, operators: [operatorKey.verifier], rules, shard },
      before: (call) => attacker.before(store, call),
      after: (call) => attacker.after(store, call),
    });
    const operator = new Operator({ store, process, rules, key: operatorKey, signer, random });
    return { shard, store, process, operator, rules };
  });
  attacker.meet(archives.map(({ store, process }) => ({ store, process })));
  let records = 0;
  for (let step = 0; step < traits.steps && findings.length === 0; step += 1) {
    const { process, operator } = random.pick(archives);
    attacker.act();
    const what = step === 0 ? 'pages' : stepOf(traits.focus, random);
    if (what === 'pages') {
      const count = 1 + random.below(traits.burst);
      records += count;
      const changes = random.chance(0.12) ? random.below(14) : Number.POSITIVE_INFINITY;
      report(`${step}: ${count} pages${changes < 100 ? `, killed after ${changes} changes` : ''}`);
      await process.archive(count, changes);
      if (process.refusal !== null) report(`   refused: ${process.refusal}`);
    } else if (what === 'restart') {
      report(`${step}: restart`);
      if (random.chance(0.6)) await process.stop();
      process.restart();
    } else if (what === 'loss') {
      const kept =
        random.chance(0.3) && process.states.length > 0 ? random.pick(process.states) : null;
      report(`${step}: the state is ${kept === null ? 'lost' : 'an older one'}`);
      process.loseState(kept);
    } else if (what === 'time') {
      clock.now += random.pick([hour, day, 20 * day, 40 * day]);
      report(`${step}: it is ${new Date(clock.now).toISOString()}`);
    } else if (what === 'lake') {
      if (traits.hasLake) await operator.cutLake(report, step);
    } else {
      await operator.ask(traits.focus, report, step);
      // So that a hold that is set again after its release is entered both times.
      if (traits.focus === 'holds' && random.chance(0.6)) await process.archive(1);
    }
    clock.now += 1 + random.below(10 * 60_000);
  }
  // The last requests are carried out, too.
  for (const { process } of archives) {
    if (findings.length > 0) break;
    attacker.act();
    await process.archive(1);
    if (process.refusal !== null) report(`   refused: ${process.refusal}`);
    if (random.chance(0.5)) await process.stop();
  }
  attacker.leave();
  for (const one of archives) {
    if (findings.length > 0) break;
    await judge({ ...one, trusted: [own.verifier], wasAttacked: attacker.hasActed, tell: report });
  }
  const crashes = archives.reduce((sum, { process }) => sum + process.crashes, 0);
  return { seed, traits, findings, requests: attacker.calls, records, crashes };
}
