// A signed delivery as a person can send it from a shell, for `check`: signed as the configured webhooks source
// requires. The secret is read by that shell from where the config has it, and is never printed.

import type { PushStream } from '../../contracts/index.ts';

const body = '{"id":"example-1","event":"incident.created"}';

/** The lines of a shell that send one. */
export function deliveryExample({ listen, rules }: PushStream): readonly string[] {
  const { host, port, path, tls } = listen;
  const { timestampHeader, signsTime, secretEncoding } = rules;
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host;
  const secret = shellText(rules.secrets[0]?.reference ?? null);
  const key =
    secretEncoding === 'base64'
      ? `-mac HMAC -macopt "hexkey:$(printf %s ${secret} | base64 -d | od -An -v -tx1 | tr -d ' \\n')"`
      : `-hmac ${secret}`;
  const signature = `$(printf %s "${signsTime ? '$now.' : ''}$body" | openssl dgst -sha256 ${key} -r | cut -c 1-64)`;
  const headers = [
    'content-type: application/json',
    `${rules.eventHeader}: incident.created`,
    `${rules.deliveryHeader}: example-1`,
    ...(timestampHeader === null ? [] : [`${timestampHeader}: $now`]),
    `${rules.signatureHeader}: sha256=${signature}`,
  ];
  return [
    `body='${body}'${timestampHeader === null ? '' : '; now=$(date +%s)'}`,
    `curl -i ${tls === undefined ? 'http' : 'https'}://${local}:${port}${path} --data-raw "$body" \\`,
    ...headers.map((one, at) => `  -H "${one}"${at < headers.length - 1 ? ' \\' : ''}`),
  ];
}

/** A shell expression for the secret, quoted. */
function shellText(reference: string | null): string {
  const [, from, name = ''] = /^\$\{(env|file):(.*)\}$/s.exec(reference ?? '') ?? [];
  if (from === 'file') return `"$(cat '${name.replaceAll("'", "'\\''")}')"`;
  return from === 'env' ? `"$${name}"` : '"$SECRET"';
}
