// Opaque cursors. A cursor contains the key after which the next page begins, the page number in the walk, the visible
// part of the list, and its creation time. It is signed over the list's path, so an altered one, or one of another
// list, is rejected. The secret is derived from the seed: cursors stay valid over a restart of the sandbox.
import { createHmac } from 'node:crypto';

/** A position in a walk. `after: null` is before the first record; `bound` freezes the visible part. */
interface CursorPlace {
  readonly after: number | null;
  readonly page: number;
  readonly bound: number | null;
  readonly issuedS: number;
}

/** Creates and parses cursors. */
export interface Cursors {
  write(path: string, place: CursorPlace): string;
  /** Null for a cursor that this sandbox did not create for this list. */
  read(path: string, cursor: string): CursorPlace | null;
}

/** Cursors of one sandbox. */
export function cursorsOf(seed: number): Cursors {
  const secret = `sluice sandbox ${seed}`;
  const sign = (path: string, payload: string) =>
    createHmac('sha256', secret)
      .update(path)
      .update('\n')
      .update(payload)
      .digest('base64url')
      .slice(0, 12);

  return {
    write(path, { after, page, bound, issuedS }) {
      const payload = `${after ?? ''}:${page}:${bound ?? ''}:${issuedS}`;
      return Buffer.from(`${payload}.${sign(path, payload)}`).toString('base64url');
    },
    read(path, cursor) {
      const decoded = Buffer.from(cursor, 'base64url').toString('latin1');
      const parts = /^((-?\d*):(\d+):(\d*):(\d+))\.(.{12})$/.exec(decoded);
      const [, payload = '', after = '', page = '', bound = '', issued = '', signature] =
        parts ?? [];
      // Compared as sent too: base64 has several spellings that decode alike.
      const same = Buffer.from(decoded, 'latin1').toString('base64url') === cursor;
      if (!same || signature !== sign(path, payload)) return null;
      return {
        after: after === '' ? null : Number(after),
        page: Number(page),
        bound: bound === '' ? null : Number(bound),
        issuedS: Number(issued),
      };
    },
  };
}
