// Addresses and credentials of the cluster. A credential becomes a header at each request, so that
// a rotated one applies.

import type { Compression } from '../../../src/contracts/config.ts';
import {
  ExportError,
  type HttpResponse,
  Secret,
  type TlsSettings,
} from '../../../src/contracts/index.ts';
import { type HttpReceiver, pageIsOfSink } from '../../shared/http-post.ts';
import { plainLine } from '../../shared/receiver-words.ts';
import { type SigningScope, sigv4 } from '../../shared/sigv4.ts';
import { answerParts } from './bulk-answer.ts';

/** The settings of a cluster connection. */
export interface ClusterSettings {
  readonly url: string | readonly string[];
  readonly index: string;
  readonly auth?:
    | {
        readonly api_key?: Secret | undefined;
        readonly username?: string | undefined;
        readonly password?: Secret | undefined;
        readonly sigv4?: SigningScope | undefined;
      }
    | undefined;
  readonly pipeline?: string | undefined;
  readonly headers?: Readonly<Record<string, Secret>> | undefined;
  readonly compression: Compression;
  readonly timeout: number;
  readonly tls?: TlsSettings | undefined;
  readonly proxy?: Secret | undefined;
}

/** The flaw of the credential; null: none. */
export function authFlaw({ auth }: Pick<ClusterSettings, 'auth'>): string | null {
  if (auth === undefined) return null;
  const { api_key: key, username, password, sigv4: scope } = auth;
  const isBasic = username !== undefined && password !== undefined;
  const isHalf = isBasic === (username === undefined && password === undefined);
  const given = [key !== undefined, isBasic, scope !== undefined].filter(Boolean);
  if (given.length === 1 && !isHalf) return null;
  return 'auth needs api_key, or username and password, or sigv4';
}

/** The path for events; it keeps the response as short as possible. */
export function bulkPath({ pipeline }: Pick<ClusterSettings, 'pipeline'>): string {
  const query = new URLSearchParams({ filter_path: answerParts });
  if (pipeline !== undefined) query.set('pipeline', pipeline);
  return `/_bulk?${query}`;
}

/** A path at each address. */
export function receiversOf(settings: ClusterSettings, path: string): readonly HttpReceiver[] {
  return [settings.url].flat().map((address) => ({
    url: address.replace(/\/+$/, '') + path,
    headers: { ...credentialOf(settings), ...settings.headers },
    compression: settings.compression,
    timeout: settings.timeout,
    tls: settings.tls,
    proxy: settings.proxy,
    sign: settings.auth?.sigv4 && sigv4(settings.auth.sigv4),
  }));
}

function credentialOf({ auth }: ClusterSettings): Readonly<Record<string, Secret>> {
  if (auth === undefined || auth.sigv4 !== undefined) return {};
  const { api_key: key, username, password } = auth;
  return {
    authorization: new Secret(() => {
      if (key !== undefined) return `ApiKey ${key.reveal()}`;
      return `Basic ${Buffer.from(`${username}:${password?.reveal()}`).toString('base64')}`;
    }),
  };
}

const otherNext =
  'Check that the sink’s url is that of the cluster, without a path; nothing was lost.';

/** An intermediary may also respond with 400; that is not about an event. */
export const judgeResponse = pageIsOfSink(otherNext);

/** A login page, a proxy’s text, a response to another request: nothing is concluded from it. */
export function foreignResponse(
  { status, headers: { 'content-type': type = 'none' } }: HttpResponse,
  doing: string,
): ExportError {
  const message = `${doing}: the receiver answered ${status} with a response that is not from a cluster (${plainLine(type)})`;
  return new ExportError('sink_refused', message, { next: otherNext, details: { status } });
}
