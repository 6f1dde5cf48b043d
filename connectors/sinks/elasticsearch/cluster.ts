// Where the cluster is and as whom it is asked. A credential becomes a header at each request, so
// that one that was rotated is taken up.

import { Secret } from '../../../src/contracts/settings.ts';
import type { TlsSettings } from '../../../src/contracts/tools.ts';
import type { Compression } from '../../shared/compression.ts';
import type { HttpReceiver } from '../../shared/http-post.ts';
import { answerParts } from './bulk-answer.ts';

/** The settings that lead to a cluster. */
export interface ClusterSettings {
  readonly url: string | readonly string[];
  readonly auth?:
    | {
        readonly api_key?: Secret | undefined;
        readonly username?: string | undefined;
        readonly password?: Secret | undefined;
      }
    | undefined;
  readonly pipeline?: string | undefined;
  readonly headers?: Readonly<Record<string, Secret>> | undefined;
  readonly compression: Compression;
  readonly timeout: number;
  readonly tls?: TlsSettings | undefined;
}

/** What is wrong with the credential; null: nothing. */
export function authFlaw({ auth }: Pick<ClusterSettings, 'auth'>): string | null {
  if (auth === undefined) return null;
  const { api_key: key, username, password } = auth;
  const isBasic = username !== undefined && password !== undefined;
  if (key === undefined ? isBasic : username === undefined && password === undefined) return null;
  return 'auth needs api_key, or username and password';
}

/** `_bulk` of each address. */
export function receiversOf(settings: ClusterSettings): readonly HttpReceiver[] {
  const query = new URLSearchParams({ filter_path: answerParts });
  if (settings.pipeline !== undefined) query.set('pipeline', settings.pipeline);
  return addressesOf(settings).map((address) => ({
    url: `${address}/_bulk?${query}`,
    headers: { ...credentialOf(settings), ...settings.headers },
    compression: settings.compression,
    timeout: settings.timeout,
    tls: settings.tls,
  }));
}

function addressesOf({ url }: Pick<ClusterSettings, 'url'>): readonly string[] {
  return [url].flat().map((one) => one.replace(/\/+$/, ''));
}

function credentialOf({ auth }: ClusterSettings): Readonly<Record<string, Secret>> {
  if (auth === undefined) return {};
  const { api_key: key, username, password } = auth;
  return {
    authorization: new Secret(() => {
      if (key !== undefined) return `ApiKey ${key.reveal()}`;
      return `Basic ${Buffer.from(`${username}:${password?.reveal()}`).toString('base64')}`;
    }),
  };
}
