// The identity of a sentinel sink in Azure: an application of Microsoft Entra, or the machine's
// managed identity.

import { z } from 'zod';
import { secret } from '../../../src/contracts/config.ts';
import { invariant } from '../../../src/contracts/index.ts';
import { postUrl } from '../../shared/http-post.ts';
import type { Identity } from './token.ts';

const metadataService = 'http://169.254.169.254/metadata/identity/oauth2/token';

const auth = z.strictObject({
  tenant_id: z.string().min(1).optional().describe('tenant of the application, by id or domain'),
  client_id: z.string().min(1).optional().describe('the application'),
  client_secret: secret().optional().describe('its secret'),
  managed_identity: z
    .strictObject({
      client_id: z.string().min(1).optional().describe('which one, where it has several'),
      url: postUrl().default(metadataService).describe('the machine’s metadata service'),
    })
    .optional()
    .describe('the identity of the machine, instead of the others'),
});

/** The setting `auth`. */
export function azureAuth() {
  return z
    .union([auth, z.literal('managed_identity')])
    .describe(
      'an application: tenant_id, client_id and client_secret; or managed_identity, also as a word',
    );
}

interface Settings extends Omit<Identity, 'auth'> {
  readonly auth: z.output<ReturnType<typeof azureAuth>>;
}

/** The identity for tokens; null if the settings name none, or two. */
export function identityOf({ auth, ...rest }: Settings): Identity | null {
  if (auth === 'managed_identity')
    return { ...rest, auth: { managed_identity: { url: metadataService } } };
  const { managed_identity, ...application } = auth;
  const { tenant_id, client_id, client_secret } = application;
  if (managed_identity !== undefined) {
    const isAlone = Object.values(application).every((value) => value === undefined);
    return isAlone ? { ...rest, auth: { managed_identity } } : null;
  }
  if (tenant_id === undefined || client_id === undefined || client_secret === undefined)
    return null;
  return { ...rest, auth: { tenant_id, client_id, client_secret } };
}

/** The same for settings without a flaw. */
export function knownIdentity(settings: Settings): Identity {
  const identity = identityOf(settings);
  invariant(identity !== null, 'a sentinel sink knows who it is');
  return identity;
}
