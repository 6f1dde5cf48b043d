// The types that config keys are declared with, so that every duration, size, secret and TLS block
// is parsed, rejected and documented alike. Connectors declare their fields with zod; one
// declaration gives validation, type, default, error text and JSON Schema.

import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { proxyFlaw, proxyOfEnvironment, Secret } from './secret.ts';

const durationUnitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const sizeUnits: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
};

/** A duration such as `250ms`, `30s`, `5m`, `24h`; milliseconds once parsed. */
export function duration() {
  return z
    .string()
    .regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, 'expected a duration such as 250ms, 30s, 5m or 24h')
    .transform((text) => {
      const unit = text.replace(/^[\d.]+/, '');
      return Math.round(Number.parseFloat(text) * (durationUnitsMs[unit] ?? 1));
    });
}

/** A size such as `64KiB`, `1MiB`, `1GiB`; bytes once parsed. */
export function size() {
  return z
    .string()
    .regex(/^\d+(\.\d+)?(B|KiB|MiB|GiB|TiB)$/, 'expected a size such as 64KiB, 1MiB or 1GiB')
    .transform((text) => {
      const unit = text.replace(/^[\d.]+/, '');
      return Math.round(Number.parseFloat(text) * (sizeUnits[unit] ?? 1));
    });
}

/** A secret, usually written as `${env:NAME}` or `${file:/path}`. */
export function secret() {
  return z
    .string()
    .min(1, 'expected a secret, such as ${env:NAME} or ${file:/path}')
    .transform((text) => new Secret(() => text));
}

/** HTTP headers to send; values may hold secrets. */
export function headers() {
  return z
    .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name'), secret())
    .optional();
}

/** `residency`: a label such as `eu`. */
export function residency() {
  return z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9-]{0,62}$/,
      'expected a label such as eu or eu-central: lower-case letters, digits and -',
    )
    .optional();
}

/** `proxy`: a secret, because it may contain user and password. */
export function proxy() {
  return z
    .string()
    .refine((text) => text === proxyOfEnvironment || proxyFlaw(text) === null, {
      error: ({ input }) => proxyFlaw(String(input)) ?? '',
    })
    .transform((text) => new Secret(() => text))
    .optional()
    .describe(
      'HTTP proxy that requests go through, such as http://proxy.example:3128, or http://USER:PASSWORD@…; https:// for TLS to the proxy; https:// addresses through a tunnel. env: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY name it',
    );
}

/** `tls: { ca_file, cert_file, key_file, min_version, server_name }`. */
export function tls() {
  return z
    .strictObject({
      ca_file: z
        .string()
        .optional()
        .describe('PEM file of the authorities to trust instead of the system’s'),
      cert_file: z
        .string()
        .optional()
        .describe('PEM file of the client certificate, followed by its intermediate certificates'),
      key_file: z
        .string()
        .optional()
        .describe('PEM file of the client certificate’s key, without a passphrase'),
      min_version: z
        .enum(['TLSv1.2', 'TLSv1.3'])
        .optional()
        .describe('lowest TLS version accepted'),
      server_name: z.string().optional().describe('name to verify, if not the address’s host'),
    })
    .optional();
}

/** A time zone by its IANA name. */
export function timeZone() {
  return z.string().refine(isTimeZone, 'expected an IANA time zone such as Europe/Zurich');
}

/** True for the IANA name of a time zone that this runtime knows. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false; // Intl does not know the zone.
  }
}

/** A whole number within bounds. */
export function count(min: number, max: number) {
  return z.int().min(min).max(max);
}

/** A host and port, `host:port` or `[v6]:port`. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

const hostPortPattern = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]/\s]+):\d{1,5}$/;

/** An address as text, `host:port` or `[v6]:port`; `parse` decides the allowed ports. */
export function hostPortSetting(
  example: string,
  parse: (text: string) => HostPort | null = parseHostPort,
) {
  const message = `expected host:port such as ${example}`;
  return z
    .string()
    .regex(hostPortPattern, message)
    .refine((text) => !hostPortPattern.test(text) || parse(text) !== null, message);
}

/** The text form that `parseHostPort` accepts. */
export function hostPortText({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Parses `host:port`; null if malformed or the port is out of range. */
export function parseHostPort(text: string): HostPort | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+)):(\d{1,5})$/.exec(text);
  if (!match) return null;
  const port = Number(match[3]);
  const host = match[1] ?? match[2];
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port };
}

/** True for addresses that only this machine can reach, as a config writes them. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
