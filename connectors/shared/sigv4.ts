// Signs requests for AWS services (AWS Signature Version 4) with AWS's own libraries:
// the credential comes from the environment, profile, web identity, container or instance,
// whichever is first, and is renewed automatically. Invariant: the signed bytes are the sent bytes,
// compressed as they are.

import { createHash, createHmac } from 'node:crypto';
import { ExportError, errorText } from '../../src/contracts/index.ts';
import type { Sign } from './http-post.ts';

/** The service's region and kind. */
export interface SigningScope {
  readonly region: string;
  /** `es`: OpenSearch domains; `aoss`: serverless collections; `kafka-cluster`: Amazon MSK. */
  readonly service: 'es' | 'aoss' | 'kafka-cluster';
}

/** Returns the scope's signer; the libraries are loaded at the first call. */
export function awsSigner(scope: SigningScope): () => ReturnType<typeof open> {
  let opening: ReturnType<typeof open> | undefined;
  return () => {
    opening ??= open(scope);
    return opening;
  };
}

/** Signs the requests of a posting sink; a credential is looked up at the first one. */
export function sigv4(scope: SigningScope): Sign {
  const signerOf = awsSigner(scope);
  return async ({ method, url, headers, body }) => {
    const signer = await signerOf();
    const { hostname, host, pathname, protocol, searchParams } = new URL(url);
    const signed = await signer.sign({
      method,
      protocol,
      hostname,
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: { ...headers, host },
      body,
    });
    return signed.headers;
  };
}

async function open(scope: SigningScope) {
  try {
    const { SignatureV4 } = await import('@smithy/signature-v4');
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
    return new SignatureV4({ ...scope, credentials: defaultProvider(), sha256: Sha256 });
  } catch (error) {
    throw new ExportError('sink_refused', `signing requests: ${errorText(error)}`, {
      next: 'Install the optional packages beside sluice (npm ci without --omit=optional); nothing was lost.',
      cause: error,
    });
  }
}

type Bytes = string | ArrayBuffer | ArrayBufferView;

/** SHA-256, or with a secret its HMAC, in the library's interface. */
class Sha256 {
  readonly #secret: Buffer | null;
  #hash;

  constructor(secret?: Bytes) {
    this.#secret = secret === undefined ? null : bufferOf(secret);
    this.#hash = this.#begin();
  }

  update(bytes: Bytes): void {
    this.#hash.update(bufferOf(bytes));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    this.#hash = this.#begin();
  }

  #begin() {
    return this.#secret === null ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
}

function bufferOf(bytes: Bytes): Buffer {
  if (typeof bytes === 'string') return Buffer.from(bytes);
  if (bytes instanceof ArrayBuffer) return Buffer.from(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
