// Rate limits per token and path, as both documents describe, in fixed windows. The unified API reports them in
// X-RateLimit-Limit and X-RateLimit-Remaining; the services document names no headers, so the sandbox sends the IETF
// draft's structured `RateLimit` there. The default ceiling is high, so unrelated tests are not throttled.

import type { Api } from './answers.ts';
import { pathMatches } from './behaviour.ts';
import type { LimitRule } from './faults.ts';

/** The verdict on one request. `retryAfterS` is set if it is rejected. */
export interface LimitVerdict {
  readonly headers: Readonly<Record<string, string>>;
  readonly refused: {
    readonly retryAfterS: number;
    readonly retryAs: 'seconds' | 'date' | 'absent';
  } | null;
}

interface Window {
  readonly endMs: number;
  used: number;
}

const DEFAULT: Omit<LimitRule, 'path'> = { requests: 60_000, per_s: 60 };

/** Above this number of windows, ended ones are removed, so that many tokens do not add up. */
const WINDOWS_MAX = 10_000;

/** Counts requests against their ceilings. */
export class Limits {
  readonly #rules: readonly LimitRule[];
  readonly #windows = new Map<string, Window>();

  constructor(rules: readonly LimitRule[]) {
    this.#rules = rules;
  }

  /** Counts one request. */
  take(api: Api, token: string, path: string, nowMs: number): LimitVerdict {
    const rule = this.#rules.findLast((candidate) => pathMatches(candidate.path, path)) ?? DEFAULT;
    const window = this.#windowFor(`${token} ${path}`, rule.per_s * 1000, nowMs);
    window.used += 1;
    const remaining = Math.max(0, rule.requests - window.used);
    const resetS = Math.max(1, Math.ceil((window.endMs - nowMs) / 1000));
    const headers = {
      unified: {
        'x-ratelimit-limit': String(rule.requests),
        'x-ratelimit-remaining': String(remaining),
      },
      services: { ratelimit: `"api";r=${remaining};t=${resetS}` },
      earlier: {},
    }[api];
    const over = window.used > rule.requests;
    return {
      headers,
      refused: over ? { retryAfterS: resetS, retryAs: rule.retry_as ?? 'seconds' } : null,
    };
  }

  #windowFor(key: string, lengthMs: number, nowMs: number): Window {
    const held = this.#windows.get(key);
    if (held !== undefined && nowMs < held.endMs) return held;
    if (this.#windows.size > WINDOWS_MAX) {
      for (const [old, { endMs }] of this.#windows) if (endMs <= nowMs) this.#windows.delete(old);
    }
    const fresh = { endMs: nowMs + lengthMs, used: 0 };
    this.#windows.set(key, fresh);
    return fresh;
  }
}
