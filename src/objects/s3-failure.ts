// The meaning of a failed S3 request, and the next step. The service's text is hostile, but only it
// names the missing permission, so it is reported in one bounded line.

import { ExportError, errorCodeOf, errorText, missingIssuer } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';

/** The used part of the SDK's error. */
interface Said {
  readonly name?: string;
  readonly message?: string;
  readonly Region?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
}

/** HTTP status of a failure; 0 if there was no response. */
export function httpStatusOf(error: unknown): number {
  return (error as Said | null)?.$metadata?.httpStatusCode ?? 0;
}

/** True for a service that does not know a header of the request. */
function isNotImplemented(status: number, name: string): boolean {
  return status === 501 || name === 'NotImplemented';
}

const throttled: ReadonlySet<string> = new Set([
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
  'RequestLimitExceeded',
  'ServiceUnavailable',
]);
const badCredentials = /AccessKeyId|Signature|Token|UserNotFound/;
const kept = 'nothing was lost, the events stay held';

/** The failure of a request about an object in a bucket. */
export function bucketFailure(doing: string, error: unknown): ExportError {
  const said = error as Said;
  const status = httpStatusOf(error);
  const name = said.name ?? '';
  const words = cleanText(
    [status || '', name === 'Error' ? '' : name, errorText(error)].join(' '),
    300,
  );
  const [code, next] =
    status === 0 ? unanswered(name, error) : answered(status, name, said.Region ?? '');
  const requestId = cleanText(said.$metadata?.requestId ?? '', 80);
  return new ExportError(code, `${doing}: ${words}`, {
    next,
    details: { status: status || undefined, request_id: requestId || undefined },
    cause: error,
  });
}

type Meaning = readonly [code: ExportError['code'], next: string];

function unanswered(name: string, error: unknown): Meaning {
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') {
    const next = `No credentials were found or given: set credentials, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine or pod a role; ${kept}.`;
    return ['sink_refused', next];
  }
  const issuer = missingIssuer(errorCodeOf(error));
  if (issuer !== null) {
    const next = `TLS failed: ${issuer.what}. ${issuer.next} It is tried again by itself, and ${kept}.`;
    return ['sink_unreachable', next];
  }
  if (/CERT|TLS|SSL|SELF_SIGNED|ISSUER/.test(errorCodeOf(error))) {
    const next = `Name the authority that signed the endpoint’s certificate as tls.ca_file, or correct the certificate; sluice tries again, and ${kept}.`;
    return ['sink_unreachable', next];
  }
  const next = `Check the endpoint, the network and the region; it is tried again by itself, and ${kept}.`;
  return ['sink_unreachable', next];
}

function answered(status: number, name: string, region: string): Meaning {
  if (throttled.has(name) || status === 429 || status === 503) {
    return ['sink_throttled', `It is tried again by itself, more slowly; ${kept}.`];
  }
  if (name === 'RequestTimeTooSkewed') {
    // From the answer the SDK knows by how much the clock differs: the next request has the right time.
    const next = `Set this machine’s clock (NTP): S3 refuses a request that is more than 15 minutes off. It is tried again by itself, and ${kept}.`;
    return ['sink_unreachable', next];
  }
  if (name === 'NoSuchBucket') {
    return ['sink_refused', `Create the bucket, or correct its name in the config; ${kept}.`];
  }
  if (badCredentials.test(name)) {
    return ['sink_refused', `Renew the credentials, or correct them in the config; ${kept}.`];
  }
  if (status === 301 || status === 307 || name === 'AuthorizationHeaderMalformed') {
    const where = /^[a-z0-9-]+$/.test(region) ? region : 'the bucket’s own';
    return ['sink_refused', `Set region to ${where}; ${kept}.`];
  }
  if (status === 403) {
    const next = `Allow s3:PutObject, s3:GetObject and s3:ListBucket on the bucket and prefix, and the use of its KMS key; to delete objects also s3:DeleteObject (with versions s3:ListBucketVersions and s3:DeleteObjectVersion), and for Object Lock s3:GetBucketObjectLockConfiguration and s3:Put and s3:Get of ObjectRetention and ObjectLegalHold; ${kept}.`;
    return ['sink_refused', next];
  }
  if (isNotImplemented(status, name)) {
    const next = `The service does not implement a header that sluice sends. For an s3 sink, set checksums: when_required, or conditional_writes: false; sluice check --connect reports which. An archive needs a service with conditional writes; ${kept}.`;
    return ['sink_refused', next];
  }
  // 400 BadDigest and RequestTimeout are transport faults, 409 is a concurrent write.
  const passes =
    status >= 500 || status === 408 || status === 409 || /BadDigest|Timeout/.test(name);
  return passes
    ? ['sink_unreachable', `It is tried again by itself; ${kept}.`]
    : ['sink_refused', `Read the error of the service, and correct the sink’s settings; ${kept}.`];
}
