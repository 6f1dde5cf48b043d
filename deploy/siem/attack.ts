// Tags of rules as tactics and techniques of MITRE ATT&CK (https://attack.mitre.org), for SIEMs that show them. Only the
// tactics and techniques of our rules are here; an unknown tag is an error, so that no rule loses one.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

const rules = new URL('sigma/rules/', import.meta.url);

/** A tactic or a technique. */
export interface AttackEntry {
  readonly id: string;
  readonly name: string;
}

/** A tactic of a rule, with the rule's techniques that belong to it. */
export interface AttackTactic extends AttackEntry {
  readonly techniques: readonly AttackEntry[];
}

const tactics: Readonly<Record<string, AttackEntry>> = {
  execution: { id: 'TA0002', name: 'Execution' },
  persistence: { id: 'TA0003', name: 'Persistence' },
  'privilege-escalation': { id: 'TA0004', name: 'Privilege Escalation' },
  'defense-evasion': { id: 'TA0005', name: 'Defense Evasion' },
  'credential-access': { id: 'TA0006', name: 'Credential Access' },
  exfiltration: { id: 'TA0010', name: 'Exfiltration' },
  'command-and-control': { id: 'TA0011', name: 'Command and Control' },
};

const techniques: Readonly<Record<string, { readonly name: string; readonly of: string }>> = {
  T1059: { name: 'Command and Scripting Interpreter', of: 'execution' },
  T1098: { name: 'Account Manipulation', of: 'persistence privilege-escalation' },
  T1110: { name: 'Brute Force', of: 'credential-access' },
  T1562: { name: 'Impair Defenses', of: 'defense-evasion' },
  T1567: { name: 'Exfiltration Over Web Service', of: 'exfiltration' },
};

/** The tactics of tags such as `attack.persistence` and `attack.t1098.001`; of a sub-technique, its technique. */
export function attackTactics(tags: readonly string[]): readonly AttackTactic[] {
  const words = tags.map((tag) => tag.replace(/^attack\./, ''));
  const ids = new Set(
    words.filter((word) => /^t\d/.test(word)).map((word) => word.slice(0, 5).toUpperCase()),
  );
  for (const id of ids)
    if (!Object.hasOwn(techniques, id)) throw new Error(`deploy/siem/attack.ts lacks ${id}`);
  return words
    .filter((word) => !/^t\d/.test(word))
    .map((word) => {
      const tactic = tactics[word];
      if (tactic === undefined) throw new Error(`deploy/siem/attack.ts lacks the tactic ${word}`);
      const own = [...ids].flatMap((id) => {
        const { name = '', of = '' } = techniques[id] ?? {};
        return of.split(' ').includes(word) ? [{ id, name }] : [];
      });
      return { ...tactic, techniques: own };
    });
}

/** The tags of a rule in `sigma/rules`. */
export function tagsOfRule(name: string): readonly string[] {
  return parse(readFileSync(new URL(`${name}.yml`, rules), 'utf8')).tags;
}
