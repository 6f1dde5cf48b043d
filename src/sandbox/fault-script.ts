// Parses a fault script from YAML (or JSON, which is YAML) and checks every key and value, so that a misspelt fault
// does not silently do nothing. All errors are reported at once, with line and column. The tables below are the whole
// language; faults.ts and behaviour.ts define the meaning of each word.
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import {
  anything,
  atLeast,
  type Check,
  flag,
  id,
  ids,
  numberOrText,
  oneOf,
  path,
  signed,
  statusCheck,
  text,
  time,
} from './checks.ts';
import type { FaultScript, SandboxFault } from './faults.ts';

/** A script that cannot be used; the message has a line per error. */
export class FaultScriptError extends Error {
  override readonly name = 'FaultScriptError';
}

type Fields = Readonly<Record<string, Check>>;

interface Mistake {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** Whether the key is wrong instead of its value. */
  readonly atKey?: boolean;
}

/** Parses a script. `name` names the text in messages. Throws FaultScriptError. */
export function parseFaultScript(text: string, name = 'fault script'): FaultScript {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    throw new FaultScriptError(
      document.errors.map((e) => `${place(e.pos[0])}: ${e.message}`).join('\n'),
    );
  }
  const script = plainValue(document, name) ?? {};
  const mistakes = mistakesIn(script).map(({ path, message, atKey }) => {
    const at =
      atKey === true
        ? keyNode(document.getIn(path.slice(0, -1), true), path.at(-1))
        : document.getIn(path, true);
    const offset = isNode(at) ? (at.range?.[0] ?? 0) : 0;
    return `${place(offset)}: ${message}`;
  });
  if (mistakes.length > 0) throw new FaultScriptError(mistakes.join('\n'));
  // Every key and value was checked against the tables that mirror these types.
  return script as FaultScript;
}

// An alias without its anchor, or one that expands without end, is found only here.
function plainValue(document: Document, name: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FaultScriptError(`${name}: ${reason}`, { cause });
  }
}

const FAULTS: Readonly<Record<SandboxFault['kind'], Fields>> = {
  status: {
    status: statusCheck,
    retry_after: numberOrText,
    retry_as: oneOf('seconds', 'date', 'absent'),
    code: text,
    field: text,
    message: text,
    date_skew_s: signed,
  },
  revoke_token: {},
  invalid_client: {},
  expires_in: { value: anything },
  html: {},
  empty_body: {},
  empty_object: {},
  error_in_200: {},
  cut_json: {},
  truncated: {},
  reset: {},
  refused: {},
  slow: { over_ms: atLeast(1) },
  delay: { ms: atLeast(1) },
  hang: { where: oneOf('before', 'mid_body') },
  wrong_shape: {
    shape: oneOf(
      'data_object',
      'data_null',
      'data_missing',
      'next_missing',
      'next_number',
      'array',
    ),
  },
  expired_cursor: { status: statusCheck },
  cursor_ignored: {},
  loop: {},
  foreign_next: { to: text },
  redirect: { to: text, status: statusCheck },
  huge: { bytes: atLeast(1) },
  short: { keep: atLeast(0), total: flag },
  shifted: { by: atLeast(1) },
  wrong_total: { total: (v) => (v === null ? null : numberOrText(v)) },
  extra_field: {},
  volatile_field: {},
  renamed_field: { field: text, to: text },
  altered: { record: atLeast(0), field: text, value: anything },
  missing_record: { record: atLeast(0) },
  lost: {},
  late: { by_s: atLeast(0, false) },
  replayed: { times: atLeast(1) },
  redelivered: { times: atLeast(1) },
  storm: { count: atLeast(1) },
  forged: {},
  unsigned: {},
};

/** Settings that a fault requires; the others have defaults. */
const NEEDED: Readonly<Partial<Record<SandboxFault['kind'], readonly string[]>>> = {
  status: ['status'],
  expires_in: ['value'],
  slow: ['over_ms'],
  delay: ['ms'],
  wrong_shape: ['shape'],
  wrong_total: ['total'],
  renamed_field: ['field', 'to'],
  late: ['by_s'],
};

const BARE_NEVER: readonly string[] = ['status', 'expires_in', 'renamed_field'];

const RULE: Fields = {
  path,
  only: oneOf('first', 'following'),
  after: atLeast(0),
  times: atLeast(1),
  every: atLeast(1),
  probability: (v) =>
    typeof v === 'number' && v > 0 && v <= 1 ? null : 'must be above 0 and at most 1',
  fault: anything,
};

const LIST: Fields = {
  path,
  order: oneOf('oldest_first', 'newest_first', 'mixed'),
  tail: oneOf('null', 'same', 'missing', null),
  late: anything,
  twins_every: atLeast(2),
  ids: oneOf('text', 'none', 'integer'),
  repeat_last: atLeast(0),
  retain: atLeast(0),
  frozen_tail: flag,
  empty_every: atLeast(2),
  limit_max: atLeast(1),
  limit_over: oneOf('clamp', 'refuse'),
  offset_max: atLeast(0),
  blocked_index: atLeast(0),
  cursor_lifetime_s: atLeast(0, false),
  bad_cursor: oneOf(400, 404, 409, 410, 422, 'ignored'),
  endless: flag,
  unexplained_every: atLeast(1),
  unseen_every: atLeast(1),
  hidden: ids,
  differs: anything,
  sunset: time,
  deprecation: time,
};

const DIFFERS: Fields = { id, field: text, value: anything };

const LATE: Fields = { every: atLeast(2), positions: atLeast(1), seconds: atLeast(0, false) };

const LIMIT: Fields = {
  path,
  requests: atLeast(1),
  per_s: atLeast(0.001, false),
  retry_as: oneOf('seconds', 'date', 'absent'),
};

type At = readonly (string | number)[];

function mistakesIn(script: unknown): readonly Mistake[] {
  const sections: Record<string, (entry: unknown, at: At) => readonly Mistake[]> = {
    rules: ruleMistakes,
    lists: listMistakes,
    limits: (entry, at) =>
      fieldMistakes(entry, at, { fields: LIMIT, needed: ['path', 'requests', 'per_s'] }),
  };
  const lists = Object.fromEntries(Object.keys(sections).map((key) => [key, isList]));
  const wrong = fieldMistakes(script, [], { fields: lists, needed: [] });
  if (wrong.length > 0 || !isRecord(script)) return wrong;
  return Object.entries(sections).flatMap(([key, check]) => {
    const entries = script[key];
    return Array.isArray(entries) ? entries.flatMap((entry, n) => check(entry, [key, n])) : [];
  });
}

function ruleMistakes(rule: unknown, at: At): readonly Mistake[] {
  const wrong = fieldMistakes(rule, at, { fields: RULE, needed: ['path', 'fault'] });
  if (!isRecord(rule) || rule.fault === undefined) return wrong;
  return [...wrong, ...faultMistakes(rule.fault, [...at, 'fault'], rule.path)];
}

function onlyEarlier(path: unknown): boolean {
  return typeof path === 'string' && path.startsWith('/earlier/');
}

function faultMistakes(fault: unknown, at: At, path: unknown): readonly Mistake[] {
  if (typeof fault === 'number') return messageAt(at, statusCheck(fault));
  const kind = isRecord(fault) ? (fault.kind ?? 'none') : fault;
  const bare = !isRecord(fault);
  const fields = typeof kind === 'string' ? lookup(FAULTS, kind) : undefined;
  if (fields === undefined || (bare && BARE_NEVER.includes(String(kind)))) {
    const kinds = Object.keys(FAULTS).join(', ');
    return [{ path: at, message: `must be a status, or a fault with its kind: ${kinds}` }];
  }
  if (kind === 'refused' && !onlyEarlier(path)) {
    const message =
      'refused needs a path that begins with /earlier/: only that API has a port of its own';
    return [{ path: at, message }];
  }
  if (bare) return [];
  const needed = lookup(NEEDED, String(kind)) ?? [];
  return fieldMistakes(fault, at, { fields: { kind: text, ...fields }, needed });
}

function listMistakes(list: unknown, at: At): readonly Mistake[] {
  const wrong = fieldMistakes(list, at, { fields: LIST, needed: ['path'] });
  if (!isRecord(list)) return wrong;
  const { late, differs = [] } = list;
  const inLate =
    late === undefined
      ? []
      : fieldMistakes(late, [...at, 'late'], { fields: LATE, needed: ['every'] });
  const needed = ['id', 'field', 'value'];
  const inDiffers = Array.isArray(differs)
    ? differs.flatMap((one, n) =>
        fieldMistakes(one, [...at, 'differs', n], { fields: DIFFERS, needed }),
      )
    : messageAt([...at, 'differs'], 'must be a list');
  return [...wrong, ...inLate, ...inDiffers];
}

function fieldMistakes(
  value: unknown,
  at: At,
  table: { readonly fields: Fields; readonly needed: readonly string[] },
): readonly Mistake[] {
  if (!isRecord(value))
    return [
      { path: at, message: `must be a mapping with ${Object.keys(table.fields).join(', ')}` },
    ];
  const missing = table.needed.filter((key) => value[key] === undefined);
  const wrong = Object.entries(value).flatMap(([key, member]): readonly Mistake[] => {
    const check = lookup(table.fields, key);
    if (check !== undefined) return messageAt([...at, key], check(member));
    const message = `unknown key ${key}; known are ${Object.keys(table.fields).join(', ')}`;
    return [{ path: [...at, key], message, atKey: true }];
  });
  return [...missing.map((key) => ({ path: at, message: `${key} is missing` })), ...wrong];
}

const isList: Check = (value) => (Array.isArray(value) ? null : 'must be a list');

function messageAt(at: At, message: string | null): readonly Mistake[] {
  return message === null ? [] : [{ path: at, message: `${at.at(-1)} ${message}` }];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function lookup<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

function keyNode(parent: unknown, key: unknown): unknown {
  if (!isMap(parent)) return undefined;
  return parent.items.find((pair) => isScalar(pair.key) && pair.key.value === key)?.key;
}
