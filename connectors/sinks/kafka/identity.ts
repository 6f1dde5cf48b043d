// The SASL identity of connections to Kafka, of the sink and of `state.kafka`: a password, a token of an OAuth 2.0 endpoint (client credentials), or a token that
// is a request signed with an AWS credential (Amazon MSK, IAM access control). Invariant: neither secret nor token
// appears in a message.

import { z } from 'zod';
import { proxy, secret } from '../../../src/contracts/config.ts';
import {
  ExportError,
  errorText,
  Secret,
  type TlsSettings,
  type Tools,
} from '../../../src/contracts/index.ts';
import {
  type KafkaPassword,
  type KafkaSasl,
  type KafkaToken,
  passwordMechanisms,
} from '../../../src/kafka/index.ts';
import { ClientToken, isInClear } from '../../shared/client-token.ts';
import { postUrl } from '../../shared/http-post.ts';
import { awsSigner } from '../../shared/sigv4.ts';

const mechanisms = [...passwordMechanisms, 'oauthbearer', 'aws_msk_iam'] as const;

/** The keys that each mechanism needs, and those it may have. */
const keysOf: Readonly<
  Record<(typeof mechanisms)[number], readonly [readonly string[], readonly string[]]>
> = {
  plain: [['username', 'password'], []],
  'scram-sha-256': [['username', 'password'], []],
  'scram-sha-512': [['username', 'password'], []],
  oauthbearer: [
    ['token_url', 'client_id', 'client_secret'],
    ['scope', 'proxy'],
  ],
  aws_msk_iam: [['region'], []],
};

/** The setting `sasl` of the sink. */
export function sasl() {
  return z
    .strictObject({
      mechanism: z.enum(mechanisms).describe('SASL mechanism'),
      username: z.string().min(1).optional().describe('plain and scram: name of the account'),
      password: secret().optional().describe('plain and scram: password of the account'),
      token_url: postUrl()
        .optional()
        .describe('oauthbearer: token endpoint, https://; `tls` of the brokers applies as well'),
      client_id: secret().optional().describe('oauthbearer: OAuth client'),
      client_secret: secret().optional().describe('oauthbearer: OAuth client’s secret'),
      scope: z
        .string()
        .min(1)
        .optional()
        .describe('oauthbearer: scopes to request, separated by spaces'),
      proxy: proxy().describe(
        'oauthbearer: HTTP proxy of the token endpoint, as `proxy` of an upstream; `env`: as HTTPS_PROXY and NO_PROXY name it. Default: none',
      ),
      region: z
        .string()
        .regex(/^[a-z0-9-]+$/, 'expected a region such as eu-central-1')
        .optional()
        .describe('aws_msk_iam: region of the cluster; the credential is that of the environment'),
    })
    .superRefine((given, context) => {
      const [needed, possible] = keysOf[given.mechanism];
      const present = Object.entries(given).flatMap(([key, value]) =>
        value === undefined || key === 'mechanism' ? [] : [key],
      );
      const fault = (key: string, message: string) =>
        context.addIssue({ code: 'custom', path: [key], message });
      for (const key of needed) {
        if (!present.includes(key)) fault(key, `is missing; ${given.mechanism} needs it`);
      }
      for (const key of present) {
        if (![...needed, ...possible].includes(key)) {
          fault(key, `does not belong to ${given.mechanism}; leave it out`);
        }
      }
      if (given.token_url !== undefined && isInClear(given.token_url)) {
        fault('token_url', 'receives the client secret, so it begins with https://');
      }
    })
    .optional()
    .describe('authentication');
}

/** Parsed `sasl`. */
export type SaslSettings = NonNullable<z.output<ReturnType<typeof sasl>>>;

/** Dependencies of an identity. */
export interface IdentityDeps {
  readonly tools: Pick<Tools, 'clock' | 'http'>;
  /** Start of every error message, e.g. `sending to lake`. */
  readonly doing: string;
  /** Limit for a token request, milliseconds. */
  readonly timeout: number;
  readonly tls?: TlsSettings | undefined;
}

/** The identity of connections with these settings. */
export function saslIdentity(settings: SaslSettings, deps: IdentityDeps): KafkaSasl {
  switch (settings.mechanism) {
    case 'oauthbearer':
      return clientIdentity(settings, deps);
    case 'aws_msk_iam':
      return awsIdentity(settings.region ?? '', deps);
    default:
      return settings as KafkaPassword;
  }
}

const none = new Secret(() => '');
/** A session with the brokers ends with its token at the latest, so each begins with a token of some life. */
const usableMs = (lifeMs: number): number => lifeMs / 2;

function clientIdentity(settings: SaslSettings, { tools, doing, ...receiver }: IdentityDeps) {
  const { token_url = '', client_id = none, client_secret = none, scope, proxy } = settings;
  const client = { token_url, client_id, client_secret, scope };
  const endpoint = { url: token_url, compression: 'none', proxy, ...receiver } as const;
  const token = new ClientToken(client, endpoint, { block: 'sasl', usableMs });
  let current: Secret | null = null;
  // Each request ends by its timeout; a sink that stops does not wait for it.
  const { signal } = new AbortController();
  /** Connections to several brokers authenticate at the same time. */
  let requested: ReturnType<typeof token.header> | null = null;
  const identity: KafkaToken = {
    mechanism: 'oauthbearer',
    async token() {
      requested ??= token.header({ doing, tools, signal }).finally(() => {
        requested = null;
      });
      const header = await requested;
      if (!(header instanceof Secret)) throw header.cause;
      current = header;
      return header.reveal().slice('Bearer '.length);
    },
    drop() {
      if (current !== null) token.drop(current);
    },
  };
  return identity;
}

/** A signed request is valid for so long; a new one is signed after a third of that. */
const validSeconds = 900;
const reuseMs = 300_000;

/**
 * The token of Amazon MSK: the URL of a signed request, as base64url
 * (https://github.com/aws/aws-msk-iam-sasl-signer-js).
 */
function awsIdentity(region: string, { tools: { clock }, doing }: IdentityDeps): KafkaToken {
  let kept: { readonly token: string; readonly until: number } | null = null;
  const signer = awsSigner({ region, service: 'kafka-cluster' });
  return {
    mechanism: 'oauthbearer',
    async token() {
      const now = clock.monotonic();
      if (kept === null || now >= kept.until) {
        kept = { token: await awsToken(await signer(), { region, doing }), until: now + reuseMs };
      }
      return kept.token;
    },
    drop() {
      kept = null;
    },
  };
}

async function awsToken(
  signer: Awaited<ReturnType<ReturnType<typeof awsSigner>>>,
  { region, doing }: { readonly region: string; readonly doing: string },
): Promise<string> {
  const hostname = `kafka.${region}.amazonaws.com`;
  const request = {
    ...{ method: 'GET', protocol: 'https:', hostname, path: '/' },
    query: { Action: 'kafka-cluster:Connect' },
    headers: { host: hostname },
  };
  try {
    const { query = {} } = await signer.presign(request, { expiresIn: validSeconds });
    const parts = Object.entries(query).map(
      ([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`,
    );
    const url = `https://${hostname}/?${parts.join('&')}&User-Agent=sluice`;
    return Buffer.from(url).toString('base64url');
  } catch (error) {
    throw new ExportError('sink_refused', `${doing}: signing for Amazon MSK: ${errorText(error)}`, {
      next: 'Give the process an AWS credential: environment variables, a profile, a web identity, or a role of its container or instance. Nothing was lost.',
      cause: error,
    });
  }
}
