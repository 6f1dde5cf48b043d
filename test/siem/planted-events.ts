// Events of a sandbox with attacks as sluice normalises them, and which of them belong to an attack: for tests of detection
// rules. Two attacks are not in the audit trail; their events come from the records that sluice creates itself.

import { readdirSync, readFileSync } from 'node:fs';
import type { Event } from '../../src/contracts/event.ts';
import { isObject, type Json, type JsonObject } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { plantedAt } from '../../src/sandbox/attacks.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { anEvent } from '../support/an-event.ts';

/** The folder with the rules. */
export const sigmaDir = new URL('../../deploy/siem/sigma/', import.meta.url);
const seed = 11;

/** An event, and the rule that must find it; null: none. */
export interface JudgedEvent {
  readonly event: Event;
  readonly rule: string | null;
  /** The group that the attack has as an alert, for rules that count. */
  readonly group: string | null;
}

/** Names of the rules that are converted from Sigma. */
export const sigmaRules: readonly string[] = readdirSync(new URL('rules/', sigmaDir))
  .map((file) => file.replace(/\.yml$/, ''))
  .toSorted();

/** JSON of a file below `deploy/siem/sigma`. */
export function sigmaJson(path: string) {
  return JSON.parse(readFileSync(new URL(path, sigmaDir), 'utf8'));
}

/**
 * As `judgedEvents(13_000)`, which has each attack, with every fourth of the ordinary events: for rules that sigma.test.ts
 * and rules-fire.test.ts try on all of them. SLUICE_TEST_LONG=1: all.
 */
export async function fewerEvents(): Promise<readonly JudgedEvent[]> {
  return await judgedEvents(13_000, process.env.SLUICE_TEST_LONG === '1' ? 1 : 4);
}

/**
 * Audit events of so many, attacks and near misses included, and sluice's own events. Of the ordinary ones every `each`th
 * is there.
 */
export async function judgedEvents(count: number, each = 1): Promise<readonly JudgedEvent[]> {
  const sandbox = await startSandbox({ attacks: true, events: count, seed, rate: 0 });
  const texts = [...sandbox.ledger().list('/v1/audit/events').records()].map(({ text }) => text);
  await sandbox.close();
  const normalise = compileNormaliser('audit', { time: ['timestamp'], id: 'id' });
  const audit = texts.flatMap((text, index) =>
    index % each === 0 || plantedAt(seed, index) !== null ? [judged(text, index, normalise)] : [],
  );
  const own = ownEvents(texts.length);
  return [...audit, ...own, ...collectionEvents(texts.length + own.length)];
}

/** Changes of a collection, which have the object in `entity` and in `entity_result`. */
function collectionEvents(from: number): readonly JudgedEvent[] {
  const normalise = compileNormaliser('drift', { time: [], id: null });
  const any = { source: 'any', destination: 'any', service: 'any' };
  const changes = [
    ['created', undefined, { ...any, action: 'accept' }, 'sluice_firewall_any_any'],
    [
      'updated',
      { ...any, action: 'drop' },
      { ...any, action: 'accept' },
      'sluice_firewall_any_any',
    ],
    ['created', undefined, { ...any, action: 'drop' }, null],
    ['updated', { ...any, action: 'accept' }, { ...any, source: 'lan', action: 'accept' }, null],
    ['deleted', { ...any, action: 'accept' }, undefined, null],
  ] as const;
  return changes.map(([change, before, after, rule], at) => {
    const event = anEvent({ offset: from + at, kind: 'drift', source: 'firewall' });
    const observed_at = new Date(event.context.fetchedAt).toISOString();
    const named = { entity_kind: 'rule', entity_id: `r-${at}`, entity_name: 'temporary' };
    const record = {
      ...{ change, observed_at, ...named },
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    };
    return {
      event: { ...event, ocsf: normalise(record, event.uid, event.context) },
      rule,
      group: null,
    };
  });
}

function judged(
  text: string,
  index: number,
  normalise: ReturnType<typeof compileNormaliser>,
): JudgedEvent {
  const record: Json = JSON.parse(text);
  const event = anEvent({ offset: index });
  const ocsf = normalise(record, event.uid, event.context);
  const planted = plantedAt(seed, index);
  const rule = planted?.isAttack ? ruleOf(planted.attack) : null;
  return {
    event: { ...event, raw: Buffer.from(text), ocsf },
    rule,
    group: rule === null || !isObject(record) ? null : groupOf(rule, record),
  };
}

function ruleOf(attack: string): string {
  return `sluice_${attack === 'role_raised' ? 'admin_role_raised' : attack}`;
}

function groupOf(rule: string, { actor, network, resource }: JsonObject) {
  const text = (at: Json | undefined, name: string) => (isObject(at) ? String(at[name]) : '');
  if (rule === 'sluice_agent_without_approval') return text(resource, 'id');
  if (rule !== 'sluice_logins_failed_then_success') return null;
  return `${text(actor, 'name')} ${text(network, 'source_ip')}`;
}

/** Conditions of sources: some are attacks, others only look like one. */
function ownEvents(from: number): readonly JudgedEvent[] {
  const normalise = compileNormaliser('condition', { time: [], id: 'id' });
  const conditions = [
    ['source.silent', 'sluice_source_silent'],
    ['source.heard', null],
    ['source.gap', null],
    ['change.unexplained', 'sluice_change_unexplained'],
    ['change.unseen', null],
  ] as const;
  return conditions.map(([condition, rule], at) => {
    const event = anEvent({ offset: from + at });
    const observed_at = new Date(event.context.fetchedAt).toISOString();
    const details = { entity_kind: 'site', entity_id: 's-1', operation: 'updated' };
    const record = { condition, observed_at, message: condition, source: 'sites', details };
    return {
      event: { ...event, ocsf: normalise(record, event.uid, event.context) },
      rule,
      group: null,
    };
  });
}
