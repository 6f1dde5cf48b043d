// The few audit events that are unusual on purpose: characters that CEF and syslog must escape, text that tries to
// forge a line, integers beyond 2^53, numbers and escapes that a re-serialiser would rewrite. They cover texts of real
// tenants. The indices are fixed, so a test can request one of each.

/** A summary with hostile or careless text, for a few indices; null for the rest. */
export function unusualSummary(index: number): string | null {
  if (index % 83 === 7) return 'note=a=b|c\\d\nCEF:0|Forged|Line|1|1|not an event|10|\tend';
  if (index % 131 === 11)
    return 'quotes " and ] and \u0000 and \u202e and \ud83d\ude80 and </script>';
  if (index % 499 === 23) return `pasted: ${'lorem ipsum dolor sit amet '.repeat(150)}`;
  return null;
}

/**
 * A record's text with something that parsers get wrong, for a few indices. Spliced as text, because JSON.stringify can
 * write neither 2^53 + 1 nor 7.10 nor an unnecessary escape; a delivered original must contain them byte for byte.
 */
export function unusual(text: string, index: number): string {
  const open = text.slice(0, -1);
  if (index % 101 === 9)
    return `${open},"sequence":${9_007_199_254_740_993n + BigInt(index) * 2n}}`;
  if (index % 103 === 13)
    return `${open},"risk":{"score":7.10,"weight":1e3,"note":null,"flags":[]}}`;
  if (index % 107 === 17) {
    return text.replace(
      /[^\0-\x7f]/g,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  }
  return text;
}
