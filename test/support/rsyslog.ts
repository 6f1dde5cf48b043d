// A real rsyslogd as the receiver in syslog and CEF tests: UDP, plain TCP (octet counting and LF, distinguished frame
// by frame), TLS, and RELP with and without TLS on loopback. Its parsed form of each message comes back, structured
// data through mmpstrucdata and CEF through liblognorm, both independent of our formatter, so agreement means
// something. imtcp, never imptcp: the latter can write gigabytes for one oversized frame; a file size limit protects
// against that.
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
import { afterThisTest, freePorts, patienceMs, tempDir, waitUntil } from './temp.ts';

export type { DecodedCef, SyslogRecord } from './rsyslog-record.ts';

export interface RsyslogOptions {
  /** Whose server certificate the TLS port shows. Default: `makeCa()`. */
  readonly tls?: Certificates;
  /** Take TLS clients only with a certificate of the same authority. Default false. */
  readonly clientCertificates?: boolean;
  /** rsyslog's maxMessageSize; what is longer becomes several records. Default `64k`; its own default is `8k`. */
  readonly maxMessage?: string;
  /** What its RELP inputs do with what is longer: cut it, or end the session. Default `abort`; its own is `truncate`. */
  readonly oversizeMode?: 'truncate' | 'abort';
  /** Where it is stopped from writing on, should it run wild. Default half a gibibyte, which a long run outgrows. */
  readonly fileBytesMax?: number;
}

/** A running rsyslogd. It ends with the test that started it, or with the process. */
export interface Rsyslog {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number;
  readonly relpPort: number;
  readonly relpsPort: number;
  /** Changes with every start; undefined while it does not run. */
  readonly pid: number | undefined;
  /** The file it appends a line to for each message (`parseRsyslogRecord`), for a run whose records outgrow memory. */
  readonly file: string;
  /** All messages received so far, over restarts too, in the order in which they were written. */
  records(): readonly SyslogRecord[];
  /** Waits until so many records are there, or until the predicate says yes. Default 10 seconds. */
  waitFor(
    until: number | ((records: readonly SyslogRecord[]) => boolean),
    timeoutMs?: number,
  ): Promise<readonly SyslogRecord[]>;
  /**
   * Stops it if it runs, and starts it on the same ports, from now on with this server certificate if one is given;
   * resolves when it listens.
   */
  restart(tls?: Certificates): Promise<void>;
  /** Lets it finish what it has read, then end (SIGTERM). */
  stop(): Promise<void>;
  /** Ends it at once (SIGKILL): what it had read and not written is lost. */
  kill(): Promise<void>;
  /** Freezes it (SIGSTOP): connections stay open and are not read. `resume` undoes it. */
  pause(): void;
  resume(): void;
  /** What rsyslogd had to say about itself. */
  log(): string;
}

/** Starts an rsyslogd; resolves when all of its ports listen. */
export async function startRsyslog(options: RsyslogOptions = {}): Promise<Rsyslog> {
  const program = await oncePerRun('rsyslog', findRsyslog);
  const certificates = options.tls ?? (await makeCa());
  const [udpPort, tcpPort, tlsPort, relpPort, relpsPort] = await freePorts(5);
  if (!udpPort || !tcpPort || !tlsPort || !relpPort || !relpsPort)
    throw new Error('starting rsyslog: too few free ports');
  const dir = tempDir('rsyslog-');
  const ports = { udpPort, tcpPort, tlsPort, relpPort, relpsPort };
  writeFileSync(join(dir, 'cef.rulebase'), 'version=2\nrule=:%cef:cef%\n');
  const configure = (shown: Certificates) =>
    writeFileSync(
      join(dir, 'rsyslog.conf'),
      rsyslogConfig({
        ...{ dir, ...ports, certificates: shown },
        clientCertificates: options.clientCertificates ?? false,
        maxMessage: options.maxMessage ?? '64k',
        oversizeMode: options.oversizeMode ?? 'abort',
      }),
    );
  configure(certificates);
  const fileBytesMax = options.fileBytesMax ?? 512 * 1024 * 1024;
  const rsyslog = new RsyslogProcess({ program, dir, configure, fileBytesMax }, ports);
  afterThisTest(() => rsyslog.kill());
  await rsyslog.restart();
  return rsyslog;
}

interface Setup {
  readonly program: RsyslogProgram;
  readonly dir: string;
  /** Writes the configuration again, with another server certificate. */
  readonly configure: (shown: Certificates) => void;
  readonly fileBytesMax: number;
}

type Ports = Pick<Rsyslog, 'udpPort' | 'tcpPort' | 'tlsPort' | 'relpPort' | 'relpsPort'>;

// POSIX, `ulimit`.
const ulimitBlockBytes = 512;

class RsyslogProcess implements Rsyslog {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number;
  readonly relpPort: number;
  readonly relpsPort: number;
  readonly file: string;
  readonly #setup: Setup;
  readonly #output: LinesFile<SyslogRecord>;
  #child: ChildProcess | undefined;

  constructor(setup: Setup, ports: Ports) {
    this.#setup = setup;
    this.file = join(setup.dir, 'records.ndjson');
    this.#output = new LinesFile(this.file, parseRsyslogRecord);
    this.udpPort = ports.udpPort;
    this.tcpPort = ports.tcpPort;
    this.tlsPort = ports.tlsPort;
    this.relpPort = ports.relpPort;
    this.relpsPort = ports.relpsPort;
  }

  get pid(): number | undefined {
    return this.#child !== undefined && isRunning(this.#child) ? this.#child.pid : undefined;
  }

  records(): readonly SyslogRecord[] {
    return this.#output.read();
  }

  async waitFor(
    until: number | ((records: readonly SyslogRecord[]) => boolean),
    timeoutMs = patienceMs,
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

  async restart(tls?: Certificates): Promise<void> {
    await this.stop();
    const { program, dir, configure, fileBytesMax } = this.#setup;
    if (tls !== undefined) configure(tls);
    const log = openSync(this.#logFile, 'a');
    const limited = `ulimit -f ${fileBytesMax / ulimitBlockBytes}; exec "$@"`;
    const args = ['-n', '-iNONE', '-f', join(dir, 'rsyslog.conf'), '-M', program.moduleDirs];
    const child = spawnChild('sh', ['-c', limited, 'sh', program.command, ...args], {
      stdio: ['ignore', log, log],
      env: { PATH: process.env.PATH, LD_LIBRARY_PATH: program.libraryDirs, TZ: 'UTC' },
    });
    closeSync(log);
    this.#child = child;
    const listening = () => {
      if (!isRunning(child)) throw new Error(`rsyslogd ended while starting: ${this.log()}`);
      const streams = [this.tcpPort, this.tlsPort, this.relpPort, this.relpsPort];
      return listens('udp', this.udpPort) && streams.every((port) => listens('tcp', port));
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
    const own = join(this.#setup.dir, 'own.log');
    return [own, this.#logFile]
      .filter((file) => existsSync(file))
      .map((file) => readFileSync(file, 'utf8'))
      .join('');
  }

  get #logFile(): string {
    return join(this.#setup.dir, 'stderr.log');
  }
}

// Read from the kernel, not by connecting: rsyslogd would log an unfinished TLS connection.
function listens(table: 'tcp' | 'udp', port: number): boolean {
  const localAddress = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync(`/proc/net/${table}`, 'utf8').includes(`: ${localAddress} 00000000:0000 `);
}
