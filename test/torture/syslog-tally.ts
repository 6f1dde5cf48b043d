// The events that rsyslog has from TLS and from TCP, read from its file as it grows.

import { LinesFile } from '../support/lines-file.ts';
import type { Rsyslog } from '../support/rsyslog.ts';
import { parseRsyslogRecord } from '../support/rsyslog-record.ts';
import { Arrivals } from './arrivals.ts';

/** Counts what an rsyslog receives; `read` is to be called every few seconds, so that each arrival has its time. */
export class SyslogTally {
  readonly tls = new Arrivals();
  readonly tcp = new Arrivals();
  /** What came as CEF and is none, or carries another uid than the message around it. */
  readonly faults: string[] = [];
  readonly #lines: LinesFile<void>;

  constructor(rsyslog: Rsyslog) {
    this.#lines = new LinesFile(rsyslog.file, (line) => this.#take(line));
  }

  /** Takes what has come since. */
  read(): void {
    this.#lines.read();
  }

  #take(line: string): void {
    const { input, msg, cef, structuredData } = parseRsyslogRecord(line);
    const uid = structuredData['sluice@32473']?.uid ?? 'without uid';
    if (input === 'tcp') {
      this.tcp.take(uid, msg.trim());
      return;
    }
    this.tls.take(uid, msg.trim());
    if (cef?.decoded !== true) this.faults.push(`${uid} is no CEF that liblognorm can read`);
    else if (cef.extensions.cs6 !== uid) this.faults.push(`${uid} has the CEF of another event`);
  }
}
