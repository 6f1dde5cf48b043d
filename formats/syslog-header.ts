// The header of a syslog line, and for RFC 5424 its structured data. Receivers cut, shift or drop
// lines whose header fields contain blanks or non-ASCII characters or are too long, so each field
// is reduced to the characters that the RFC allows (RFC 5424 section 6). Hot path: parts that are
// the same from line to line (facility, host, the day, the stream) are cached, and a Date is
// created only once a day.

import type { Event } from '../src/contracts/index.ts';
import { classNameOf, epochMsOf, severityOf } from './parts.ts';
import { cutEscaped, cutToBytes, oneLine } from './text.ts';

/** Names of the facilities, by their number (RFC 5424 section 6.2.1, table 1). */
export const facilities = [
  'kern',
  'user',
  'mail',
  'daemon',
  'auth',
  'syslog',
  'lpr',
  'news',
  'uucp',
  'cron',
  'authpriv',
  'ftp',
  'ntp',
  'audit',
  'alert',
  'clock',
  'local0',
  'local1',
  'local2',
  'local3',
  'local4',
  'local5',
  'local6',
  'local7',
] as const;

/** The sender's data for the header. */
interface SenderSettings {
  readonly facility: (typeof facilities)[number];
  readonly hostname: string;
  readonly appName: string;
  /** Private enterprise number at the end of the structured data's name. */
  readonly enterprise: number;
  /** Maximum bytes of a line: a shorter line leaves less for names. */
  readonly bytesMax: number;
}

// OCSF levels 0 to 6 as syslog severities. Fatal is alert, not emergency, which makes daemons write
// to all terminals.
const severities = [6, 6, 5, 4, 3, 2, 1];
const dayMs = 86_400_000;
const yearEndMs = 253_402_300_800_000;
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const twoDigits = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'));

/** Creates the writer of `<PRI>1 TIME HOST APP - MSGID [SD] `, as in RFC 5424 section 6. */
export function header5424(sender: SenderSettings): (event: Event) => string {
  const priorities = prioritiesOf(sender.facility).map((priority) => `${priority}1 `);
  const host = ` ${hostOf(sender)} ${printable(sender.appName, 48)} - `;
  const clock = clockOf((day) => `${day.toISOString().slice(0, 11)}`);
  const streamData = structuredData(sender);
  let className: unknown;
  let messageId = '-';
  return (event) => {
    const { ocsf } = event;
    if (ocsf.class_name !== className) {
      className = ocsf.class_name;
      messageId = classNameOf(className) ?? '-';
    }
    const time = epochMsOf(ocsf.time);
    const stamp =
      time === undefined || time < 0 || time >= yearEndMs
        ? '-'
        : `${clock(time)}.${milliseconds(time)}Z`;
    return (
      (priorities[severityOf(ocsf.severity_id)] ?? '') +
      stamp +
      host +
      messageId +
      streamData(event)
    );
  };
}

/**
 * Creates the writer of `<PRI>Mmm dd hh:mm:ss HOST TAG` and a blank (RFC 3164, 4.1), which has no
 * zone: its times are local ones of `timezone`, daylight saving included.
 */
export function header3164(
  sender: SenderSettings,
  tag: string,
  timezone: string,
): (event: Event) => string {
  const localTime = isUtc(timezone) ? (time: number) => time : localTimeIn(timezone);
  const priorities = prioritiesOf(sender.facility);
  const host = ` ${hostOf(sender)} ${tag}`;
  const clock = clockOf(
    (day) => `${months[day.getUTCMonth()]} ${String(day.getUTCDate()).padStart(2)} `,
  );
  return (event) => {
    const time = epochMsOf(event.ocsf.time) ?? 0;
    return (priorities[severityOf(event.ocsf.severity_id)] ?? '') + clock(localTime(time)) + host;
  };
}

/** Whether a zone's local time always equals UTC. */
export function isUtc(timezone: string): boolean {
  return /^(UTC|Etc\/UTC)$/i.test(timezone);
}

/**
 * A zone's local time, as milliseconds as if it were UTC. An offset is looked up once per period
 * between changes.
 */
function localTimeIn(timezone: string): (timeMs: number) => number {
  let [fromMs, untilMs, offsetMs] = [Number.NaN, Number.NaN, 0];
  return (timeMs) => {
    if (!(timeMs >= fromMs && timeMs < untilMs)) {
      const at = Temporal.Instant.fromEpochMilliseconds(timeMs).toZonedDateTimeISO(timezone);
      offsetMs = Math.round(at.offsetNanoseconds / 1e6);
      // A change at exactly this moment is not before it.
      const before = at.add({ milliseconds: 1 }).getTimeZoneTransition('previous');
      fromMs = before?.epochMilliseconds ?? Number.NEGATIVE_INFINITY;
      untilMs = at.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
    }
    return timeMs + offsetMs;
  };
}

/** The tag of RFC 3164, 4.1.3: at most 32 characters, none of which ends a tag for any receiver. */
export function tagOf(appName: string): string {
  return `${appName.replace(/[^A-Za-z0-9_.-]/g, '').slice(0, 32) || 'sluice'}: `;
}

function prioritiesOf(facility: SenderSettings['facility']): readonly string[] {
  return severities.map((severity) => `<${facilities.indexOf(facility) * 8 + severity}>`);
}

/** The host, cut so that the shortest lines still have space for a message. */
function hostOf({ hostname, bytesMax }: SenderSettings): string {
  return printable(hostname, Math.min(255, Math.floor(bytesMax / 7)));
}

/** PRINTUSASCII of RFC 5424: no blanks, only ASCII; the NILVALUE if nothing is left. */
function printable(text: string, lengthMax: number): string {
  return text.replace(/[^\x21-\x7e]/g, '').slice(0, lengthMax) || '-';
}

/** Writes times as the day, computed by `dayText` once a day, and `hh:mm:ss`, in UTC. */
function clockOf(dayText: (day: Date) => string): (timeMs: number) => string {
  let day = Number.NaN;
  let text = '';
  return (timeMs) => {
    const dayNow = Math.floor(timeMs / dayMs);
    if (dayNow !== day) {
      day = dayNow;
      text = dayText(new Date(dayNow * dayMs));
    }
    const seconds = Math.floor((timeMs - day * dayMs) / 1000);
    const minutes = Math.floor(seconds / 60);
    return `${text}${twoDigits[Math.floor(minutes / 60)]}:${twoDigits[minutes % 60]}:${twoDigits[seconds % 60]}`;
  };
}

function milliseconds(timeMs: number): string {
  const ms = timeMs % 1000;
  return ms >= 100 ? `${ms}` : ms >= 10 ? `0${ms}` : `00${ms}`;
}

/**
 * Writes ` [sluice@32473 uid="…" source="…" stream="…"]`; names are computed once per run of events
 * of a stream.
 */
function structuredData(sender: SenderSettings): (event: Event) => string {
  const opening = ` [sluice@${sender.enterprise} uid="`;
  // Names come from the config and are short; even the longest leave space for a message.
  const nameBytesMax = Math.min(160, Math.floor(sender.bytesMax / 16));
  let source: string | undefined;
  let stream: string | undefined;
  let names = '';
  return (event) => {
    if (event.source !== source || event.stream !== stream) {
      source = event.source;
      stream = event.stream;
      names = `" source="${paramValue(source, nameBytesMax)}" stream="${paramValue(stream, nameBytesMax)}"] `;
    }
    // A uid is hexadecimal digits: nothing needs escaping.
    return opening + event.uid + names;
  };
}

const plainParam = /^[A-Za-z0-9_./:@-]*$/;

/**
 * A PARAM-VALUE: `"`, `\` and `]` escaped (RFC 5424 section 6.3.3), control characters replaced by
 * blanks.
 */
function paramValue(text: string, bytesMax: number): string {
  if (text.length <= bytesMax && plainParam.test(text)) return text;
  const escaped = oneLine(text).replace(/["\\\]]/g, '\\$&');
  return cutEscaped(escaped, (whole) => cutToBytes(whole, bytesMax));
}
