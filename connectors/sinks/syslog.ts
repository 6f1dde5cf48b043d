// The syslog sink: complete syslog messages over UDP, TCP, TLS or RELP. formats/syslog.ts creates
// the messages; here they are framed and sent. Over RELP the receiver acknowledges each message
// (syslog/relp.ts). Plain syslog has no acknowledgement, so over TCP and TLS delivery is settled
// (see syslog/connection.ts): when the receiver has read to the end of a connection that sluice
// closed, or, if it never closes its side, when the connection stayed healthy for `resend_window`.
// Younger events are sent again with the same uid when a connection breaks. Over UDP delivery
// cannot be confirmed. Invariant: a successful write alone never makes a batch delivered.

import { lookup } from 'node:dns/promises';
import { z } from 'zod';
import {
  count,
  defineSink,
  duration,
  type FormatChoice,
  timeZone,
  tls,
} from '../../src/contracts/config.ts';
import {
  type Delivery,
  type EncodedLines,
  ExportError,
  type Sink,
  type Tools,
} from '../../src/contracts/index.ts';
import { type Address, isAnswered, isSecure, parseAddress } from './syslog/address.ts';
import { datagramBytesMax, openDatagrams } from './syslog/datagrams.ts';
import type { SyslogReceiver } from './syslog/dial.ts';
import { connectFailure } from './syslog/failures.ts';
import { type Framer, type Frames, framerFor } from './syslog/framing.ts';
import { Habit } from './syslog/habit.ts';
import type { RelpWindow } from './syslog/relp-session.ts';
import type { Waiter } from './syslog/unsettled.ts';

const facilities = [
  ...['kern', 'user', 'mail', 'daemon', 'auth', 'syslog', 'lpr', 'news', 'uucp', 'cron'],
  ...['authpriv', 'ftp', 'ntp', 'audit', 'alert', 'clock'],
  ...['local0', 'local1', 'local2', 'local3', 'local4', 'local5', 'local6', 'local7'],
] as const;

// PRINTUSASCII (RFC 5424, section 6): a blank here would shift every following field.
function headerName(lengthMax: number) {
  return z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'expected printable ASCII without blanks')
    .max(lengthMax)
    .optional();
}

const windowMsDefault = 2_000;
const framingDefault = 'octet_counting';
/** The default of librelp. */
const relpWindowDefault = 128;

const framingAdvice = {
  octet_counting:
    'framing is octet_counting: the length of each message precedes it, without a line end after it. A receiver that expects lines joins many events into one message, with numbers such as “612 <134>1” between them: then set framing: newline',
  newline:
    'framing is newline: each message is a line. A receiver that expects octet counting drops messages or ends the connection: then write framing: octet_counting',
} as const;
const confirmAdvice =
  'messages count as delivered when the peer closes the connection after sluice does. A load balancer or proxy that closes by itself proves nothing about the receiver: for events that must not be lost, send to the receiver directly';
/** rsyslog's default message limit. */
const relpMessageUsual = 8_096;
const relpAdvice =
  'max_message exceeds the default maxDataSize of rsyslog’s imrelp, which cuts a longer message and acknowledges it: raise maxDataSize';

const fields = {
  address: z
    .string()
    .transform((text, context): Address => {
      const address = parseAddress(text);
      if (typeof address !== 'string') return address;
      context.addIssue({ code: 'custom', message: address });
      return z.NEVER;
    })
    .describe(
      'the receiver: udp://, tcp://, tls://, relp:// or relps:// (RELP over TLS), then host:port',
    ),
  protocol: z
    .enum(['rfc5424', 'rfc3164'])
    .default('rfc5424')
    .describe('the syslog header: RFC 5424 with structured data, or the older RFC 3164'),
  timezone: timeZone()
    .optional()
    .describe(
      'with protocol: rfc3164, whose times name no zone: the time zone that the receiver expects; UTC unless set',
    ),
  facility: z.enum(facilities).default('local0').describe('the syslog facility of all messages'),
  app_name: headerName(48).describe('APP-NAME (RFC 5424) or tag (RFC 3164); sluice unless set'),
  hostname: headerName(255).describe(
    'HOSTNAME, by which many receivers file; this machine’s unless set',
  ),
  enterprise: count(1, 4_294_967_295)
    .optional()
    .describe('private enterprise number in the name of the structured data'),
  max_message: count(1024, 16 * 1024 * 1024)
    .default(8_000)
    .describe(
      'maximum bytes of a message; longer ones are shortened and marked. Default of rsyslog: 8096',
    ),
  framing: z
    .enum(['octet_counting', 'newline'])
    .optional()
    .describe('over TCP and TLS, how messages are separated (RFC 6587); default: octet_counting'),
  resend_window: duration()
    .optional()
    .describe(
      'over TCP and TLS, how long after its first byte a connection is closed, to confirm that the receiver has read everything; with confirm: window, how long it must stay healthy before its messages count as delivered; default: 2s',
    ),
  confirm: z
    .enum(['auto', 'close', 'window'])
    .optional()
    .describe(
      'when a message counts as delivered over TCP and TLS. close: the receiver ends its side of the connection after sluice has ended its own. window: the connection stayed healthy for resend_window. auto (default): close, and window only with a receiver that never ends its side',
    ),
  window: count(1, 1000)
    .optional()
    .describe('over RELP, messages that may be unanswered at a time; 128 unless set'),
  connect_timeout: duration()
    .prefault('10s')
    .describe('bound on connecting, handshake included, and over RELP on opening a session'),
  stall_timeout: duration()
    .prefault('30s')
    .describe('time without progress after which a connection is replaced'),
  tls: tls().describe(
    'for tls:// and relps:// addresses; TLS 1.2 or newer, the receiver’s certificate is always verified',
  ),
};

type SyslogSettings = z.output<z.ZodObject<typeof fields>>;

/** `type: syslog`. */
export const syslogSink = defineSink({
  type: 'syslog',
  summary: 'Sends events to a SIEM or log server as syslog, over UDP, TCP, TLS or RELP.',
  fields,
  carries: ['lines', 'json'],
  usualFormat: 'syslog',
  sample: {
    to: { what: 'the receiver', usual: 'tls://siem.example:6514' },
    lines: (to) => [
      `address: ${JSON.stringify(to)} # relps:// and relp:// (RELP) if the receiver has them, tls://, tcp:// or udp://; over udp:// losses are not detected`,
      'format: cef # or syslog, or json',
      '# format: { type: cef, vendor: Acme, product: Edge }',
      '# tls: { ca_file: /etc/ssl/siem-ca.pem }',
    ],
  },
  // A batch stays unresolved for the resend window, so the batches of that time must fit. It is in
  // memory only until it is written: `ready` keeps them from piling up before a receiver that does
  // not read. Over RELP each message is acknowledged soon.
  inFlightMax: ({ address }) => (isAnswered(address) ? 1 : 4096),
  batch: { events: 1000, bytes: 512 * 1024, waitMs: 20 },
  format: wrapFormat,
  flaw,
  assurance: ({ address }) =>
    address.transport === 'udp' ? 'none' : isAnswered(address) ? 'answered' : 'settled',
  advice({ address, framing, confirm, max_message }) {
    if (address.transport === 'udp') return [];
    if (isAnswered(address)) return max_message > relpMessageUsual ? [relpAdvice] : [];
    return [
      framingAdvice[framing ?? framingDefault],
      ...(confirm === 'window' ? [] : [confirmAdvice]),
    ];
  },
  async open(settings, { tools }) {
    const { address } = settings;
    if (address.transport === 'udp') return openDatagrams(address);
    if (!isAnswered(address)) return await openStream(settings, tools);
    const { RelpSender } = await import('./syslog/relp.ts');
    return new RelpSender(receiver(settings), relpWindow(settings), tools.clock);
  },
  async probe(settings, tools, signal) {
    if (isAnswered(settings.address)) {
      const { RelpSession } = await import('./syslog/relp-session.ts');
      const world = { clock: tools.clock, signal };
      const session = await RelpSession.open(receiver(settings), relpWindow(settings), world);
      return await session.close();
    }
    if (settings.address.transport !== 'udp') {
      const { tryOut } = await import('./syslog/dial.ts');
      await tryOut(receiver(settings), tools.clock, signal);
      return;
    }
    try {
      await lookup(settings.address.host);
    } catch (error) {
      throw connectFailure(settings.address, error);
    }
  },
});

// `format: cef` means CEF inside a syslog message; the header's keys are the sink's.
function wrapFormat(settings: SyslogSettings, chosen: FormatChoice): FormatChoice {
  const { protocol, timezone, facility, app_name, hostname, enterprise, max_message } = settings;
  return {
    ...(chosen.type === 'syslog' ? chosen : { message: chosen }),
    type: 'syslog',
    ...{ protocol, facility, max_message },
    ...(timezone !== undefined && { timezone }),
    ...(app_name !== undefined && { app_name }),
    ...(hostname !== undefined && { hostname }),
    ...(enterprise !== undefined && { enterprise }),
  };
}

function flaw(settings: SyslogSettings): string | null {
  const { address, tls: secure, max_message } = settings;
  if (secure && !isSecure(address)) {
    const scheme = isAnswered(address) ? 'relps' : 'tls';
    return `tls is set, but ${address.text} is not encrypted: write ${scheme}:// or leave tls out`;
  }
  if (settings.timezone !== undefined && settings.protocol === 'rfc5424') {
    return 'timezone needs protocol: rfc3164, and protocol is rfc5424, whose times are UTC and say so: leave timezone out';
  }
  if ((secure?.cert_file === undefined) !== (secure?.key_file === undefined)) {
    return 'tls.cert_file and tls.key_file belong together: set both or neither';
  }
  if (settings.window !== undefined && !isAnswered(address)) {
    return 'window is of RELP: leave it out, or use relp:// or relps://';
  }
  const isPlain = address.transport === 'tcp' || address.transport === 'tls';
  const idle = (['framing', 'resend_window', 'confirm'] as const).find(
    (key) => settings[key] !== undefined && !isPlain,
  );
  if (idle) {
    const name = address.transport === 'udp' ? 'UDP' : 'RELP';
    return `${idle} has no meaning over ${name}: leave it out, or use tcp:// or tls://`;
  }
  return address.transport === 'udp' && max_message > datagramBytesMax
    ? `max_message is ${max_message}, and a datagram holds ${datagramBytesMax} bytes: lower it, or use tcp:// or tls://`
    : null;
}

function relpWindow({ window, stall_timeout }: SyslogSettings): RelpWindow {
  return { messages: window ?? relpWindowDefault, stallMs: stall_timeout };
}

function receiver(settings: SyslogSettings): SyslogReceiver {
  const { address, connect_timeout } = settings;
  return { address, tls: settings.tls ?? {}, connectTimeoutMs: connect_timeout };
}

async function openStream(settings: SyslogSettings, { clock, log }: Tools): Promise<Sink> {
  // Loaded on use: TLS alone is slow to load.
  const { SyslogStream } = await import('./syslog/stream.ts');
  const settling = {
    confirm: settings.confirm ?? 'auto',
    windowMs: settings.resend_window ?? windowMsDefault,
    stallMs: settings.stall_timeout,
  } as const;
  const habit = new Habit(settling, log.with({ address: settings.address.text }));
  const stream = new SyslogStream(receiver(settings), habit, clock);
  const framer = framerFor(settings.framing ?? framingDefault);
  return {
    // Only the lines: events would keep whole pages in memory while a receiver does not read.
    send: ({ lines }, signal, freeLines) =>
      new Promise((resolve, reject) => {
        if (lines.length === 0) return resolve({ outcome: 'delivered' });
        const waiter = waiterFor(resolve, reject, signal);
        stream.send({ frames: () => framesOf(lines, { framer, waiter, freeLines }), waiter });
      }),
    ready: (signal) => stream.ready(signal),
    notice: () => habit.notice,
    close: () => stream.close(),
  };
}

interface Framing {
  readonly framer: Framer;
  readonly waiter: Waiter;
}

// A separate function, so that its closure does not keep the batch in memory.
function waiterFor(
  resolve: (delivery: Delivery) => void,
  reject: (reason: unknown) => void,
  signal: AbortSignal,
): Waiter {
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  const report = (delivery: Delivery) => {
    signal.removeEventListener('abort', abort);
    resolve(delivery);
  };
  return { report, signal };
}

function framesOf(
  lines: EncodedLines,
  {
    framer,
    waiter,
    freeLines = () => {},
  }: Framing & { readonly freeLines: (() => void) | undefined },
): Frames | null {
  const frames = framer(lines);
  if (frames === null) {
    const cause = new ExportError(
      'record_refused',
      'framing a syslog message: it holds a line feed, and newline framing cannot carry one',
      { next: 'Use framing: octet_counting; the event is kept as a dead letter.' },
    );
    waiter.report({ outcome: 'refused', scope: 'batch', cause, by: 'sink' });
    return null;
  }
  if (frames.bytes.buffer !== lines.bytes.buffer) {
    freeLines();
    return frames;
  }
  const release = () => {
    frames.release();
    freeLines();
  };
  return { ...frames, release };
}
