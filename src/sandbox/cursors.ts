// Opaque cursors. A cursor says after which key of a list the next page begins, which page of the
// walk that is, what the walk may see, and when it was handed out; it is signed over the list's
// path, so one that was altered, or carried to another list, is refused. The secret comes from the
// seed: cursors that a client kept stay good when the sandbox is restarted.
import { createHmac } from 'node:crypto';

/** A place in a walk. `after: null` is before the first record; `bound` freezes what is seen. */
interface CursorPlace {
  readonly after: number | null;
  readonly page: number;
  readonly bound: number | null;
  readonly issuedS: number;
}

/** Writes and reads cursors. */
export interface Cursors {
  write(path: string, place: CursorPlace): string;
  /** Null for anything this sandbox did not hand out for this list. */
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
      // Compared as sent as well: base64 has spellings that decode alike but are not what was sent.
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
