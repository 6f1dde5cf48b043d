// The control calls of a sandbox: methods for tests in the same process, and endpoints under
// /_sandbox for all other clients (the server listens on loopback only):
//   GET    /_sandbox/faults                    each rule with its matches and occurrences
//   POST   /_sandbox/faults                    a fault script, YAML or JSON, replaces the one in use
//   DELETE /_sandbox/faults                    no faults, well-behaved lists
//   GET    /_sandbox/ledger                    lists with sizes, first and last id; firewalls
//   GET    /_sandbox/ledger/ids?path=          ids of one list, one a line
//   GET    /_sandbox/ledger/record?path=&id=   a record's exact text
//   GET    /_sandbox/ledger/firewall?company=  objects, policies and every change so far
//   GET    /_sandbox/ledger/collection?path=   entities of a collection, one a line
//   GET    /_sandbox/ledger/changes?path=      its changes so far, one a line
//   GET    /_sandbox/ledger/timeline?path=&id= the timeline of one of its entities, one a line
//   GET    /_sandbox/ledger/deliveries         webhooks delivered or not, one a line
//   GET    /_sandbox/requests                  counts per path; DELETE resets them
//   POST   /_sandbox/grow?path=&count=         that many more records at once
//   POST   /_sandbox/rate?per_s=               another growth; 0 stops it
//   POST   /_sandbox/trim?path=&keep=          retention: only the newest stay
//   POST   /_sandbox/firewall?company=         body {kind, op, id, policy_id}: a change now
//   POST   /_sandbox/change?path=              body {op, id, count, explained, seen}: a change now
//   POST   /_sandbox/tokens/revoke             all tokens
//   POST   /_sandbox/secret?value=             another client secret; the old one is refused
//   POST   /_sandbox/webhooks/secret?value=    deliveries are signed with another secret
import { failed, ok, type SandboxRequest, type SandboxResponse } from './answers.ts';
import type { ChangeOrder, SandboxChange } from './collection.ts';
import { FaultScriptError, parseFaultScript } from './fault-script.ts';
import type { FaultCount, FaultScript } from './faults.ts';
import type { FirewallChange, FirewallOrder } from './firewall.ts';
import type { Ledger } from './ledger.ts';
import type { PathTraffic } from './traffic.ts';

/** Changes a running sandbox. */
export interface SandboxControl {
  /** Replaces the fault script; counters restart. `{}` ends all faults. */
  setFaults(script: FaultScript): void;
  faultCounts(): readonly FaultCount[];
  /** Adds records to the growing list at a path, at once. */
  grow(path: string, count: number): void;
  /** Audit events per second from now on; the logs follow in proportion. */
  setRate(perS: number): void;
  /** Drops all but the newest `keep` records of a list, as retention does. */
  trim(path: string, keep: number): void;
  /** Makes a firewall change now. Throws if it names something that does not exist. */
  changeFirewall(company: string, order: FirewallOrder): FirewallChange;
  /** Makes changes to a collection now. Throws if it names something that does not exist. */
  change(path: string, order: ChangeOrder): readonly SandboxChange[];
  revokeTokens(): void;
  rotateSecret(secret: string): void;
  /** Signs webhook deliveries with another secret from the next attempt on. */
  rotateWebhookSecret(secret: string): void;
  requests(): Readonly<Record<string, PathTraffic>>;
  resetRequests(): void;
}

/** Answers requests to control endpoints. A rejected call is a 400 with the reason as text. */
export function controlEndpoints(
  control: SandboxControl,
  ledger: Ledger,
): (ask: SandboxRequest) => SandboxResponse {
  const calls: Readonly<Record<string, (ask: SandboxRequest) => SandboxResponse>> = {
    'GET faults': () => ok(control.faultCounts()),
    'POST faults': (ask) => done(() => control.setFaults(parseFaultScript(ask.body, 'body'))),
    'DELETE faults': () => done(() => control.setFaults({})),
    'GET ledger': () => ok(summaryOf(ledger)),
    'GET ledger/ids': (ask) => text([...ledger.list(pathOf(ask)).ids(), ''].join('\n')),
    'GET ledger/record': (ask) => {
      const found = ledger.list(pathOf(ask)).textOf(ask.query.get('id') ?? '');
      return found === null
        ? failed('services', { status: 404, message: 'no such record' })
        : text(found);
    },
    'GET ledger/firewall': (ask) => ok(ledger.firewall(ask.query.get('company') ?? '')),
    'GET ledger/collection': (ask) => lines(ledger.collection(pathOf(ask)).entities().values()),
    'GET ledger/changes': (ask) => lines(ledger.collection(pathOf(ask)).changes()),
    'GET ledger/timeline': (ask) =>
      lines(ledger.collection(pathOf(ask)).timeline(ask.query.get('id') ?? '')),
    'GET ledger/deliveries': () => lines(ledger.deliveries()),
    'GET requests': () => ok(control.requests()),
    'DELETE requests': () => done(() => control.resetRequests()),
    'POST grow': (ask) => done(() => control.grow(pathOf(ask), numberOf(ask, 'count'))),
    'POST rate': (ask) => done(() => control.setRate(numberOf(ask, 'per_s'))),
    'POST trim': (ask) => done(() => control.trim(pathOf(ask), numberOf(ask, 'keep'))),
    'POST firewall': (ask) =>
      ok(control.changeFirewall(ask.query.get('company') ?? '', orderOf(ask.body))),
    'POST change': (ask) => ok(control.change(pathOf(ask), changeOrderOf(ask.body))),
    'POST tokens/revoke': () => done(() => control.revokeTokens()),
    'POST secret': (ask) => done(() => control.rotateSecret(ask.query.get('value') ?? '')),
    'POST webhooks/secret': (ask) =>
      done(() => control.rotateWebhookSecret(ask.query.get('value') ?? '')),
  };
  return (ask) => {
    const call = calls[`${ask.method} ${ask.path.replace(/^\/_sandbox\/?/, '')}`];
    if (call === undefined) return text(`control calls: ${Object.keys(calls).join(', ')}\n`, 404);
    try {
      return call(ask);
    } catch (error) {
      // Only the caller's request can fail here; a script's message already names each line.
      const reason = error instanceof Error ? error.message : String(error);
      return text(error instanceof FaultScriptError ? `${reason}\n` : `refused: ${reason}\n`, 400);
    }
  };
}

function summaryOf(ledger: Ledger): object {
  const lists = ledger.lists.map(({ path, size, first, textAt }) => {
    const idAt = (index: number) =>
      size === 0 ? null : (/^\{"id":"?([^",]+)/.exec(textAt(index))?.[1] ?? null);
    return { path, size, first, first_id: idAt(0), last_id: idAt(size - 1) };
  });
  const collections = ledger.collections.map(({ kind, path, company }) => ({
    kind,
    path,
    company,
  }));
  return { lists, collections };
}

function done(call: () => void): SandboxResponse {
  call();
  return ok({ done: true });
}

function text(body: string, status = 200): SandboxResponse {
  return {
    status,
    headers: {},
    content: { form: 'raw', text: body, type: 'text/plain; charset=utf-8' },
  };
}

function lines(values: Iterable<object>): SandboxResponse {
  return text([...values].map((value) => `${JSON.stringify(value)}\n`).join(''));
}

function pathOf(ask: SandboxRequest): string {
  return ask.query.get('path') ?? '';
}

function numberOf(ask: SandboxRequest, name: string): number {
  const value = Number(ask.query.get(name) ?? Number.NaN);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${name} must be a number, 0 or more`);
  return value;
}

const KINDS: readonly FirewallOrder['kind'][] = ['object', 'policy', 'rule'];
const OPS: readonly FirewallOrder['op'][] = ['add', 'change', 'remove', 'move'];

const CHANGE_OPS: readonly ChangeOrder['op'][] = ['created', 'updated', 'deleted'];

function changeOrderOf(body: string): ChangeOrder {
  const order: unknown = JSON.parse(body);
  const member = (name: string): unknown =>
    typeof order === 'object' && order !== null ? Reflect.get(order, name) : undefined;
  const op = CHANGE_OPS.find((known) => known === member('op'));
  if (op === undefined) throw new Error(`op must be one of ${CHANGE_OPS.join(', ')}`);
  const [id, count] = [member('id'), member('count')];
  return {
    op,
    ...(typeof id === 'string' && { id }),
    ...(typeof count === 'number' && { count }),
    explained: member('explained') !== false,
    seen: member('seen') !== false,
  };
}

function orderOf(body: string): FirewallOrder {
  const order: unknown = JSON.parse(body);
  const member = (name: string) => {
    const value =
      typeof order === 'object' && order !== null ? Reflect.get(order, name) : undefined;
    return typeof value === 'string' ? value : undefined;
  };
  const kind = KINDS.find((known) => known === member('kind'));
  const op = OPS.find((known) => known === member('op'));
  if (kind === undefined || op === undefined) {
    throw new Error(`kind must be one of ${KINDS.join(', ')}, op one of ${OPS.join(', ')}`);
  }
  const [id, policyId] = [member('id'), member('policy_id')];
  return { kind, op, ...(id !== undefined && { id }), ...(policyId !== undefined && { policyId }) };
}
