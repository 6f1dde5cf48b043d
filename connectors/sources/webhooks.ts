// Webhooks of the unified API: upstream's own events, sent to an address that sluice listens on.
// The document shows the headers' names and that HMAC-SHA256 signs, but neither the signed bytes
// nor the body: each of these has the likeliest default and a key. Missed deliveries (upstream may
// give up on one) are found by the polled sources, which each delivery triggers at once.

import { z } from 'zod';
import {
  defineSource,
  duration,
  hostPortSetting,
  parseHostPort,
  secret,
  size,
} from '../../src/contracts/config.ts';
import type { Secret, ServerTls } from '../../src/contracts/index.ts';
import { listFields, mappingField } from './list.ts';

const header = () => z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name');

/** Location of id and time, as for lists. */
const places = () => {
  const { id, time, time_formats } = listFields();
  return { id, time, time_formats };
};

const timed = '{timestamp}.{body}';

/** `type: webhooks`. */
export const webhooksSource = defineSource({
  type: 'webhooks',
  summary: 'Listens for the events that the unified API delivers by webhook.',
  apis: ['unified'],
  fields: () => ({
    listen: hostPortSetting('0.0.0.0:8443').describe(
      'address to listen on; sources can share an address, each with its own path',
    ),
    path: z
      .string()
      .regex(/^\/[^\s?#]*$/, 'expected a path such as /webhooks')
      .default('/webhooks')
      .describe('path of deliveries'),
    url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe(
        'address for upstream to reach the listener; `webhooks register` registers this address',
      ),
    events: z
      .array(z.string().min(1))
      .min(1)
      .default(['incident.created', 'agent.action.gated'])
      .describe('names of the events that `webhooks register` subscribes to'),
    secret: z
      .union([secret(), z.array(secret()).min(1).max(8)])
      .describe('secret that signs deliveries; a list during a rotation'),
    secret_encoding: z
      .enum(['text', 'base64'])
      .default('text')
      .describe('base64: the secret is decoded to its bytes'),
    signed_form: z.enum(['body', timed]).default('body').describe('the signed bytes'),
    signature_header: header()
      .default('SVC-Signature')
      .describe('header with `sha256=` and the signature in hex'),
    delivery_header: header().default('SVC-Delivery').describe('header with the delivery’s id'),
    event_header: header().default('SVC-Event').describe('header with the event’s name'),
    timestamp_header: header()
      .optional()
      .describe('header with the time of sending; default: none, and the age is not checked'),
    max_age: duration().prefault('5m').describe('highest age of a delivery, by `timestamp_header`'),
    max_body: size().prefault('1MiB').describe('longest accepted body'),
    tls: z
      .strictObject({
        cert_file: z
          .string()
          .describe(
            'PEM file of the certificate, followed by its intermediate certificates; read again when renewed',
          ),
        key_file: z.string().describe('PEM file of its key, without a passphrase'),
        ca_file: z
          .string()
          .optional()
          .describe(
            'PEM file of authorities; clients must present a certificate signed by one of them',
          ),
        min_version: z
          .enum(['TLSv1.2', 'TLSv1.3'])
          .optional()
          .describe('lowest TLS version accepted'),
      })
      .optional()
      .describe('serves HTTPS; default: plain HTTP, for a proxy in front'),
    ...places(),
    mapping: mappingField('record').describe(
      'OCSF class and fields; fields without a mapping go to unmapped',
    ),
  }),
  flaw: ({ signed_form, timestamp_header, secret, secret_encoding }) => {
    if (signed_form === timed && timestamp_header === undefined) {
      return 'signed_form holds {timestamp}, so timestamp_header is needed';
    }
    const isNothing = secret_encoding === 'base64' && [secret].flat().some(decodesToNothing);
    return isNothing ? 'secret is no base64, as secret_encoding says: it decodes to nothing' : null;
  },
  own: ({ listen, path, tls }) => ({
    ...{ key: 'path', name: `${listen}${path}` },
    alike: { key: 'tls', of: listen, value: JSON.stringify(tls ?? null) },
  }),
  streams: (settings, { name }) => {
    const { host, port } = parseHostPort(settings.listen) ?? { host: '', port: 0 };
    const lower = (text: string) => text.toLowerCase();
    const isEvery = host === '0.0.0.0' || host === '::';
    const here = `http${settings.tls === undefined ? '' : 's'}://${settings.listen}${settings.path}`;
    return [
      {
        kind: 'push' as const,
        ...{ name, source: name, records: 'log' as const, paths: [], fingerprint: '' },
        listen: { host, port, path: settings.path, tls: settings.tls as ServerTls | undefined },
        registration: { url: settings.url ?? (isEvery ? null : here), events: settings.events },
        rules: {
          secrets: [settings.secret].flat(),
          secretEncoding: settings.secret_encoding === 'base64' ? 'base64' : 'utf8',
          signsTime: settings.signed_form === timed,
          signatureHeader: lower(settings.signature_header),
          deliveryHeader: lower(settings.delivery_header),
          eventHeader: lower(settings.event_header),
          timestampHeader: settings.timestamp_header ? lower(settings.timestamp_header) : null,
          maxAgeMs: settings.max_age,
          bodyBytesMax: settings.max_body,
        },
      },
    ];
  },
  reading: ({ id, time, time_formats: timeFormats, mapping }) => ({
    ...{ id, time, timeFormats, ...(mapping && { mapping }) },
  }),
});

/** An unreadable secret is reported where it is used. */
function decodesToNothing(secret: Secret): boolean {
  try {
    return Buffer.from(secret.reveal(), 'base64').length === 0;
  } catch {
    return false;
  }
}
