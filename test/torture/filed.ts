// The output of the file sink: finished segments, compressed or not, and the active one. Finished segments never
// change, so each is read once; the file sink has the events in the order of the spool, and the accounts lean on it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { digestOf } from './digest.ts';

/** An event as the file sink wrote it. */
export interface FiledEvent {
  readonly uid: string;
  /** Of its line. */
  readonly digest: string;
  readonly log: string;
  readonly company: string;
  /** Upstream's own id; empty where there is none. */
  readonly id: string;
}

/** The files of one file sink. */
export class FiledEvents {
  readonly #activeFile: string;
  readonly #finished = new Map<string, readonly FiledEvent[]>();

  constructor(activeFile: string) {
    this.#activeFile = activeFile;
  }

  /** Every event so far, in the order of the spool. */
  read(): readonly FiledEvent[] {
    const dir = join(this.#activeFile, '..');
    // A segment that is just being compressed is there under both names.
    const names = readdirSync(dir).flatMap((name) => finishedName.exec(name)?.[1] ?? []);
    const segments = [...new Set(names)].sort();
    for (const name of segments) {
      const events = this.#finished.get(name) ?? eventsIn(join(dir, name));
      // Null: it went while we looked, and is there under its other name the next time.
      if (events !== null) this.#finished.set(name, events);
    }
    return [
      ...segments.flatMap((name) => this.#finished.get(name) ?? []),
      ...(eventsIn(this.#activeFile) ?? []),
    ];
  }
}

const finishedName = /^(events\.\d{16}(?:-\d+)?\.ndjson)(?:\.gz)?$/;

function eventsIn(path: string): readonly FiledEvent[] | null {
  const packed = contentOf(`${path}.gz`);
  const bytes = packed === null ? contentOf(path) : gunzipSync(packed);
  return bytes === null ? null : bytes.toString('utf8').split('\n').slice(0, -1).map(filedEvent);
}

function contentOf(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null; // not there, or not any more
  }
}

function filedEvent(line: string): FiledEvent {
  const { metadata } = JSON.parse(line) as {
    readonly metadata: {
      readonly uid: string;
      readonly log_name?: string;
      readonly tenant_uid?: string;
      readonly original_event_uid?: string;
    };
  };
  const {
    uid,
    log_name: log = '',
    tenant_uid: company = '',
    original_event_uid: id = '',
  } = metadata;
  return { uid, digest: digestOf(line), log, company, id };
}
