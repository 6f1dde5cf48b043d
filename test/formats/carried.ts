// What a reader of CEF is to get back of a text, once the replacements that sluice documents are made.

/** What a decoder is to give back of a value, all replacements made. */
export function carriedValue(value: string): string {
  const text = value.replaceAll('\r\n', '\n').replace(/[^\P{Cc}\r\n]|[\u2028\u2029]/gu, ' ');
  return text.replace(/^ +/, '').replace(/ +$/, '');
}

/** What a decoder is to give back of a header field. */
export function carriedHeader(value: string): string {
  return carriedValue(value.replace(/\r\n|[\r\n]/g, ' '));
}
