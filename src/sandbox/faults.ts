// Faults: which error occurs at a request, and when. A fault script is an ordered list of rules; the first rule that
// matches the path and is due decides. Counts are per rule and randomness is seeded, so a script does the same in every
// run. bend.ts and deliver.ts implement the faults; fault-script.ts parses the YAML.
import { type ListBehaviour, pathMatches } from './behaviour.ts';
import { Random } from './random.ts';

/** One fault of a request. */
export type SandboxFault =
  /** An error in the API's own envelope; `retry_after` is seconds, or any other text unchanged. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly retry_after?: number | string;
      readonly retry_as?: 'seconds' | 'date' | 'absent';
      readonly code?: string;
      readonly field?: string;
      readonly message?: string;
      /** Shifts the Date header, and a Retry-After date with it. */
      readonly date_skew_s?: number;
    }
  /** The presented token is revoked for good, and the response is 401. */
  | { readonly kind: 'revoke_token' }
  | { readonly kind: 'invalid_client' }
  /** Replaces `expires_in` of the token response; the text `missing` omits it. */
  | { readonly kind: 'expires_in'; readonly value: unknown }
  /** 200 with a web page, as a captive portal or proxy answers. */
  | { readonly kind: 'html' }
  | { readonly kind: 'empty_body' }
  /** 200 with `{}`. */
  | { readonly kind: 'empty_object' }
  /** 200 with an error envelope. */
  | { readonly kind: 'error_in_200' }
  /** The JSON ends in the middle, and Content-Length matches. */
  | { readonly kind: 'cut_json' }
  /** Half the body, then the connection ends: Content-Length promised more. */
  | { readonly kind: 'truncated' }
  /** The connection is reset without a response. */
  | { readonly kind: 'reset' }
  /** As `reset`, and the port is closed until another script replaces this one. */
  | { readonly kind: 'refused' }
  /** The body trickles over this long. */
  | { readonly kind: 'slow'; readonly over_ms: number }
  /** The response is correct but late. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Silence, before the response or in the middle of the body. */
  | { readonly kind: 'hang'; readonly where?: 'before' | 'mid_body' }
  | {
      readonly kind: 'wrong_shape';
      readonly shape:
        | 'data_object'
        | 'data_null'
        | 'data_missing'
        | 'next_missing'
        | 'next_number'
        | 'array';
    }
  /** The cursor is rejected; requests without one are unaffected. */
  | { readonly kind: 'expired_cursor'; readonly status?: number }
  /** The cursor is ignored: the first page is served. */
  | { readonly kind: 'cursor_ignored' }
  /** next_cursor leads back to the first page. */
  | { readonly kind: 'loop' }
  /** The next page's address in the response has another origin. */
  | { readonly kind: 'foreign_next'; readonly to?: string }
  | { readonly kind: 'redirect'; readonly to?: string; readonly status?: number }
  /** A list of this many bytes of one record. */
  | { readonly kind: 'huge'; readonly bytes?: number }
  /** The list ends after this many of the page's records, as if that were all, including `total`. */
  | { readonly kind: 'short'; readonly keep?: number; readonly total?: boolean }
  /** Offsets are shifted, as if this many earlier records had been deleted meanwhile. */
  | { readonly kind: 'shifted'; readonly by?: number }
  | { readonly kind: 'wrong_total'; readonly total: number | string | null }
  /** Each record gains a new member. */
  | { readonly kind: 'extra_field' }
  /** Each record gains a member that differs at each reading. */
  | { readonly kind: 'volatile_field' }
  /** A member of each record has another name. */
  | { readonly kind: 'renamed_field'; readonly field: string; readonly to: string }
  /** A record of the page, or the object, has other content; default the first's description. */
  | {
      readonly kind: 'altered';
      readonly record?: number;
      readonly field?: string;
      readonly value?: unknown;
    }
  /** A record of the page is missing; default the first. */
  | { readonly kind: 'missing_record'; readonly record?: number }
  | DeliveryFault;

/** One fault of a webhook delivery; the path is /webhooks/ and the event's name. */
type DeliveryFault =
  /** It is never sent. */
  | { readonly kind: 'lost' }
  /** It is sent this much later. */
  | { readonly kind: 'late'; readonly by_s: number }
  /** The same body is sent this many more times, each with its own delivery id. Default 1. */
  | { readonly kind: 'replayed'; readonly times?: number }
  /** The same body is sent this many more times with the same delivery id. Default 1. */
  | { readonly kind: 'redelivered'; readonly times?: number }
  /** This many more correctly signed events at once that exist nowhere else. Default 500. */
  | { readonly kind: 'storm'; readonly count?: number }
  /** An invented event beside it, signed with another secret. */
  | { readonly kind: 'forged' }
  /** An invented event beside it without a signature. */
  | { readonly kind: 'unsigned' };

/** When a fault occurs. */
export interface FaultRule {
  /** A path, with `*` for one segment and `**` for any rest. */
  readonly path: string;
  /** Only requests with a cursor (or an offset above 0), or only those without. */
  readonly only?: 'first' | 'following';
  /** Passes this many matching requests before it begins. Default 0. */
  readonly after?: number;
  /** Ends after this many occurrences. Default: never. */
  readonly times?: number;
  /** Occurs at each n-th matching request. Default 1. */
  readonly every?: number;
  /** Occurs with this probability, drawn from the seed. Default 1. */
  readonly probability?: number;
  /** A fault, only its kind if that suffices, or a status. */
  readonly fault: SandboxFault | SandboxFault['kind'] | number;
}

/** A ceiling on requests per token and path; beyond it 429. */
export interface LimitRule {
  readonly path: string;
  readonly requests: number;
  readonly per_s: number;
  readonly retry_as?: 'seconds' | 'date' | 'absent';
}

/** All faults of a sandbox. Keys are those of the YAML file. */
export interface FaultScript {
  readonly rules?: readonly FaultRule[];
  readonly lists?: readonly ListBehaviour[];
  readonly limits?: readonly LimitRule[];
}

/** A rule and its counts so far. */
export interface FaultCount {
  readonly path: string;
  readonly fault: SandboxFault['kind'];
  readonly seen: number;
  readonly happened: number;
}

/** A request as rules see it. */
export interface FaultAsk {
  readonly path: string;
  readonly following: boolean;
  /** Whether it is a webhook delivery, which has faults of its own. */
  readonly delivery?: boolean;
}

interface Counted {
  readonly rule: FaultRule;
  readonly fault: SandboxFault;
  seen: number;
  happened: number;
}

/** The rules of one script, with their counters. */
export class Faults {
  readonly #rules: readonly Counted[];
  readonly #random: Random;

  constructor(rules: readonly FaultRule[], seed: number) {
    this.#rules = rules.map((rule) => ({
      rule,
      fault: fullFault(rule.fault),
      seen: 0,
      happened: 0,
    }));
    this.#random = new Random(seed, 0xfa17);
  }

  /** The fault for this request, if a rule is due. Counts the request. */
  next(ask: FaultAsk): SandboxFault | null {
    for (const counted of this.#rules) {
      if (matches(counted, ask) && this.#isDue(counted)) {
        counted.happened += 1;
        return counted.fault;
      }
    }
    return null;
  }

  /** Matches and occurrences of each rule, in the script's order. */
  counts(): readonly FaultCount[] {
    return this.#rules.map(({ rule, fault, seen, happened }) => {
      return { path: rule.path, fault: fault.kind, seen, happened };
    });
  }

  #isDue(counted: Counted): boolean {
    const {
      after = 0,
      times = Number.POSITIVE_INFINITY,
      every = 1,
      probability = 1,
    } = counted.rule;
    counted.seen += 1;
    const turn = counted.seen - after;
    if (turn <= 0 || turn % every !== 0 || counted.happened >= times) return false;
    return probability >= 1 || this.#random.chance(probability);
  }
}

/** Faults without a meaning for the first page. */
const FOLLOWING_ONLY: readonly SandboxFault['kind'][] = ['expired_cursor', 'shifted'];

const OF_DELIVERIES: readonly SandboxFault['kind'][] = [
  'lost',
  'late',
  'replayed',
  'redelivered',
  'storm',
  'forged',
  'unsigned',
];

function matches({ rule, fault }: Counted, ask: FaultAsk): boolean {
  if (OF_DELIVERIES.includes(fault.kind) !== (ask.delivery ?? false)) return false;
  const only = rule.only ?? (FOLLOWING_ONLY.includes(fault.kind) ? 'following' : undefined);
  if (only !== undefined && (only === 'following') !== ask.following) return false;
  return pathMatches(rule.path, ask.path);
}

/** Kinds that can be written as a bare word, with their default. */
const BARE: Readonly<Record<SandboxFault['kind'], SandboxFault | null>> = {
  status: null,
  revoke_token: { kind: 'revoke_token' },
  invalid_client: { kind: 'invalid_client' },
  expires_in: null,
  html: { kind: 'html' },
  empty_body: { kind: 'empty_body' },
  empty_object: { kind: 'empty_object' },
  error_in_200: { kind: 'error_in_200' },
  cut_json: { kind: 'cut_json' },
  truncated: { kind: 'truncated' },
  reset: { kind: 'reset' },
  refused: { kind: 'refused' },
  slow: { kind: 'slow', over_ms: 2_000 },
  delay: { kind: 'delay', ms: 1_000 },
  hang: { kind: 'hang' },
  wrong_shape: { kind: 'wrong_shape', shape: 'data_object' },
  expired_cursor: { kind: 'expired_cursor' },
  cursor_ignored: { kind: 'cursor_ignored' },
  loop: { kind: 'loop' },
  foreign_next: { kind: 'foreign_next' },
  redirect: { kind: 'redirect' },
  huge: { kind: 'huge' },
  short: { kind: 'short' },
  wrong_total: { kind: 'wrong_total', total: 0 },
  shifted: { kind: 'shifted' },
  extra_field: { kind: 'extra_field' },
  volatile_field: { kind: 'volatile_field' },
  renamed_field: null,
  altered: { kind: 'altered' },
  missing_record: { kind: 'missing_record' },
  lost: { kind: 'lost' },
  late: { kind: 'late', by_s: 60 },
  replayed: { kind: 'replayed' },
  redelivered: { kind: 'redelivered' },
  storm: { kind: 'storm' },
  forged: { kind: 'forged' },
  unsigned: { kind: 'unsigned' },
};

function fullFault(fault: FaultRule['fault']): SandboxFault {
  if (typeof fault === 'number') return { kind: 'status', status: fault };
  if (typeof fault !== 'string') return fault;
  const full = BARE[fault];
  if (full === null) throw new Error(`a fault of kind ${fault} needs its settings`);
  return full;
}
