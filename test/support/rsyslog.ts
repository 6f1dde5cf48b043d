// A real rsyslogd as the receiver in syslog and CEF tests: UDP, plain TCP (octet counting and LF, told
// apart frame by frame) and TLS on loopback. What it understood of each message comes back parsed,
// structured data through mmpstrucdata and CEF through liblognorm, both written by other people than
// our formatter, so agreement means something. imtcp, never imptcp: the latter can write gigabytes
// for one oversized frame; a file size limit stands behind that.
import type { ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Certificates, makeCa } from './certificates.ts';
import { endChild, isRunning, spawnChild } from './children.ts';
import { LinesFile } from './lines-file.ts';
import { oncePerRun } from './once-per-run.ts';
import { rsyslogConfig } from './rsyslog-config.ts';
import { findRsyslog, type RsyslogProgram } from './rsyslog-program.ts';
import { parseRsyslogRecord, type SyslogRecord } from './rsyslog-record.ts';
import { afterThisTest, freePorts, tempDir, waitUntil } from './temp.ts';

export type { DecodedCef, SyslogRecord } from './rsyslog-record.ts';

export interface RsyslogOptions {
  /** Whose server certificate the TLS port shows. Default: `makeCa()`. */
  readonly tls?: Certificates;
  /** Take TLS clients only with a certificate of the same authority. Default false. */
  readonly clientCertificates?: boolean;
  /** rsyslog's maxMessageSize; what is longer becomes several records. Default `64k`; its own default is `8k`. */
  readonly maxMessage?: string;
}

/** A running rsyslogd. It ends with the test that started it, or with the process. */
export interface Rsyslog {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number;
  /** Changes with every start; undefined while it does not run. */
  readonly pid: number | undefined;
  /** All messages received so far, over restarts too, in the order in which they were written. */
  records(): readonly SyslogRecord[];
  /** Waits until so many records are there, or until the predicate says yes. Default 10 seconds. */
  waitFor(
    until: number | ((records: readonly SyslogRecord[]) => boolean),
    timeoutMs?: number,
  ): Promise<readonly SyslogRecord[]>;
  /** Stops it if it runs, and starts it on the same ports; resolves when it listens. */
  restart(): Promise<void>;
  /** Lets it finish what it has read, then end (SIGTERM). */
  stop(): Promise<void>;
  /** Ends it at once (SIGKILL): what it had read and not written is lost. */
  kill(): Promise<void>;
  /** Freezes it (SIGSTOP): connections stay open and nobody reads. `resume` undoes it. */
  pause(): void;
  resume(): void;
  /** What rsyslogd had to say about itself. */
  log(): string;
}

/** Starts an rsyslogd; resolves when all three ports listen. */
export async function startRsyslog(options: RsyslogOptions = {}): Promise<Rsyslog> {
  const program = await oncePerRun('rsyslog', findRsyslog);
  const certificates = options.tls ?? (await makeCa());
  const [udpPort, tcpPort, tlsPort] = await freePorts(3);
  if (!udpPort || !tcpPort || !tlsPort) throw new Error('starting rsyslog: too few free ports');
  const dir = tempDir('rsyslog-');
  writeFileSync(join(dir, 'cef.rulebase'), 'version=2\nrule=:%cef:cef%\n');
  writeFileSync(
    join(dir, 'rsyslog.conf'),
    rsyslogConfig({
      ...{ dir, udpPort, tcpPort, tlsPort, certificates },
      clientCertificates: options.clientCertificates ?? false,
      maxMessage: options.maxMessage ?? '64k',
    }),
  );
  const rsyslog = new RsyslogProcess(program, dir, { udpPort, tcpPort, tlsPort });
  afterThisTest(() => rsyslog.kill());
  await rsyslog.restart();
  return rsyslog;
}

interface Ports {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number;
}

class RsyslogProcess implements Rsyslog {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number;
  readonly #program: RsyslogProgram;
  readonly #dir: string;
  readonly #output: LinesFile<SyslogRecord>;
  #child: ChildProcess | undefined;

  constructor(program: RsyslogProgram, dir: string, ports: Ports) {
    this.#program = program;
    this.#dir = dir;
    this.#output = new LinesFile(join(dir, 'records.ndjson'), parseRsyslogRecord);
    this.udpPort = ports.udpPort;
    this.tcpPort = ports.tcpPort;
    this.tlsPort = ports.tlsPort;
  }

  get pid(): number | undefined {
    return this.#child !== undefined && isRunning(this.#child) ? this.#child.pid : undefined;
  }

  records(): readonly SyslogRecord[] {
    return this.#output.read();
  }

  async waitFor(
    until: number | ((records: readonly SyslogRecord[]) => boolean),
    timeoutMs = 10_000,
  ): Promise<readonly SyslogRecord[]> {
    const enough = (records: readonly SyslogRecord[]) =>
      typeof until === 'number' ? records.length >= until : until(records);
    await waitUntil(() => enough(this.records()), {
      what: () =>
        `rsyslog to receive ${typeof until === 'number' ? `${until} messages` : 'what the test waits for'}; ` +
        `it has ${this.records().length}; its log: ${this.log().slice(-2000)}`,
      timeoutMs,
    });
    return this.records();
  }

  async restart(): Promise<void> {
    await this.stop();
    const log = openSync(this.#logFile, 'a');
    // 2^20 blocks of 512 bytes: half a gibibyte, should it ever run wild.
    const limited = 'ulimit -f 1048576; exec "$@"';
    const args = ['-n', '-iNONE', '-f', join(this.#dir, 'rsyslog.conf'), '-M'];
    const child = spawnChild(
      'sh',
      ['-c', limited, 'sh', this.#program.command, ...args, this.#program.moduleDirs],
      {
        stdio: ['ignore', log, log],
        env: { PATH: process.env.PATH, LD_LIBRARY_PATH: this.#program.libraryDirs, TZ: 'UTC' },
      },
    );
    closeSync(log);
    this.#child = child;
    const listening = () => {
      if (!isRunning(child)) throw new Error(`rsyslogd ended while starting: ${this.log()}`);
      return (
        listens('udp', this.udpPort) && listens('tcp', this.tcpPort) && listens('tcp', this.tlsPort)
      );
    };
    await waitUntil(listening, { what: () => `rsyslogd to listen; its log: ${this.log()}` });
  }

  async stop(): Promise<void> {
    this.resume();
    if (this.#child !== undefined) await endChild(this.#child);
  }

  async kill(): Promise<void> {
    if (this.#child !== undefined) await endChild(this.#child, 'SIGKILL');
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  log(): string {
    const own = join(this.#dir, 'own.log');
    return [own, this.#logFile]
      .filter((file) => existsSync(file))
      .map((file) => readFileSync(file, 'utf8'))
      .join('');
  }

  get #logFile(): string {
    return join(this.#dir, 'stderr.log');
  }
}

// Asked of the kernel rather than by connecting: rsyslogd would log a half-made TLS connection.
function listens(table: 'tcp' | 'udp', port: number): boolean {
  const localAddress = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync(`/proc/net/${table}`, 'utf8').includes(`: ${localAddress} 00000000:0000 `);
}
