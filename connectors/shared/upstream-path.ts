// Paths of upstream endpoints with variable parts. Ids are hostile text: each is encoded as one
// segment, and one that cannot be a segment is refused, because `..` leads to another endpoint even
// when encoded.

import { z } from 'zod';

const placeholder = /\{(\w+)\}/g;

/** The only variable part that a config may use. */
const companyPlaceholder = '{company_id}';

/** A path setting such as `/audit/events`; its variable parts are `{company_id}` and `own`. */
export function endpointPath(own = companyPlaceholder) {
  return z
    .string()
    .regex(
      /^\/[^\s?#]*$/,
      'expected a path such as /audit/events; query parameters belong under params',
    )
    .refine(
      (path) =>
        [...path.matchAll(placeholder)].every(
          ([part]) => part === companyPlaceholder || part === own,
        ),
      `only ${[...new Set([companyPlaceholder, own])].join(' and ')} can be in braces`,
    );
}

/** True for a path that is read once per company. */
export function isPerCompany(path: string): boolean {
  return path.includes(companyPlaceholder);
}

/** The path with its variable parts filled in and encoded; null if one cannot be a segment. */
export function filledPath(
  template: string,
  values: Readonly<Record<string, string>>,
): string | null {
  let usable = true;
  const path = template.replace(placeholder, (_, name: string) => {
    const value = values[name] ?? '';
    if (value === '' || value === '.' || value === '..' || !value.isWellFormed()) usable = false;
    return usable ? encodedSegment(value) : '';
  });
  return usable ? path : null;
}

/** RFC 3986 section 2.3's unreserved characters are kept; all others are percent-encoded. */
function encodedSegment(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
