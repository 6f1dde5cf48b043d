// One message as rsyslogd understood it: the line of JSON that `rsyslog-config.ts` makes it write,
// turned into a typed record.

/** What liblognorm's CEF parser read. */
export type DecodedCef =
  | {
      readonly decoded: true;
      readonly vendor: string;
      readonly product: string;
      readonly version: string;
      readonly signatureId: string;
      readonly name: string;
      readonly severity: string;
      /** Values with the escapes undone. */
      readonly extensions: Readonly<Record<string, string>>;
    }
  /** It begins like CEF and is not: the part that could not be parsed. */
  | { readonly decoded: false; readonly unparsed: string };

const inputs = ['udp', 'tcp', 'tls', 'relp', 'relps'] as const;

/** By which of its inputs it came. */
export type RsyslogInput = (typeof inputs)[number];

export interface SyslogRecord {
  readonly pri: number;
  readonly facility: number;
  readonly severity: number;
  /** `1` for RFC 5424, `0` for what rsyslog took for RFC 3164. */
  readonly version: number;
  /** RFC 3339, from the message; the time of reception where the message had none. */
  readonly timestamp: string;
  readonly hostname: string;
  readonly app: string;
  readonly procid: string;
  readonly msgid: string;
  /** As received, `-` where there is none. */
  readonly structuredDataRaw: string;
  /** SD-ID to parameters, with the escapes undone; of a repeated SD-ID or parameter the last stays. */
  readonly structuredData: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly msg: string;
  /** The whole frame, without its framing. */
  readonly rawmsg: string;
  readonly input: RsyslogInput;
  /** For messages that begin with `CEF:`, else null. */
  readonly cef: DecodedCef | null;
}

type Line = Readonly<Record<string, unknown>>;

/** Parses a line of rsyslogd's output; throws on anything that `rsyslog-config.ts` does not produce. */
export function parseRsyslogRecord(text: string): SyslogRecord {
  const line = asObject(JSON.parse(text));
  const named = asText(line.input);
  const input = inputs.find((one) => one === named);
  if (input === undefined) {
    throw new Error(`rsyslog names an input that its configuration does not have: ${named}`);
  }
  return {
    pri: Number(line.pri),
    facility: Number(line.facility),
    severity: Number(line.severity),
    version: Number(line.version),
    timestamp: asText(line.timestamp),
    hostname: asText(line.hostname),
    app: asText(line.app),
    procid: asText(line.procid),
    msgid: asText(line.msgid),
    structuredDataRaw: asText(line.structured_data),
    structuredData: structuredData(line.structured),
    msg: asText(line.msg),
    rawmsg: asText(line.raw),
    input,
    cef: decodedCef(line),
  };
}

function structuredData(value: unknown): SyslogRecord['structuredData'] {
  const elements = Object.entries(asObject(value)).map(([id, parameters]) => [
    id,
    texts(asObject(parameters)),
  ]);
  return Object.fromEntries(elements);
}

function decodedCef(line: Line): DecodedCef | null {
  const refused = asText(line.cef_refused);
  if (refused !== '') return { decoded: false, unparsed: refused };
  const cef = asObject(line.cef);
  if (cef.DeviceVendor === undefined) return null;
  return {
    decoded: true,
    vendor: asText(cef.DeviceVendor),
    product: asText(cef.DeviceProduct),
    version: asText(cef.DeviceVersion),
    signatureId: asText(cef.SignatureID),
    name: asText(cef.Name),
    severity: asText(cef.Severity),
    extensions: texts(asObject(cef.Extensions)),
  };
}

function texts(object: Line): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, asText(value)]));
}

// rsyslog writes an absent object as an empty string, and an object inside a property as JSON or, by
// version, as the text of that JSON.
function asObject(value: unknown): Line {
  if (typeof value === 'string' && value.startsWith('{')) return asObject(JSON.parse(value));
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
