// Writes rsyslogd's configuration for a test. One ruleset processes all inputs: it decodes structured data and CEF and
// appends one line of JSON per message. Control characters are left as received, so that a test sees the message and
// not rsyslog's rewriting. rsyslogd's own messages go to a separate file, for the reports of failing tests.
import { join } from 'node:path';
import type { Certificates } from './certificates.ts';

export interface RsyslogConfigOptions {
  readonly dir: string;
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number;
  readonly relpPort: number;
  readonly relpsPort: number;
  readonly certificates: Certificates;
  readonly clientCertificates: boolean;
  readonly maxMessage: string;
  readonly oversizeMode: 'truncate' | 'abort';
}

// Name in the JSON line, and rsyslog's name for the property.
const properties: readonly (readonly [string, string])[] = [
  ['pri', 'pri'],
  ['facility', 'syslogfacility'],
  ['severity', 'syslogseverity'],
  ['version', 'protocol-version'],
  ['hostname', 'hostname'],
  ['app', 'app-name'],
  ['procid', 'procid'],
  ['msgid', 'msgid'],
  ['structured_data', 'structured-data'],
  ['structured', '$!rfc5424-sd'],
  ['msg', 'msg'],
  ['raw', 'rawmsg'],
  ['input', 'inputname'],
  ['cef', '$!decoded!cef'],
  ['cef_refused', '$!decoded!unparsed-data'],
];

/** The text of `rsyslog.conf`; `cef.rulebase` is expected in the same directory. */
export function rsyslogConfig(options: RsyslogConfigOptions): string {
  const { dir, certificates, maxMessage } = options;
  const quoted = (name: string) => `"${join(dir, name)}"`;
  return `
global(workDirectory="${dir}" maxMessageSize="${maxMessage}" net.enableDNS="off"
  parser.escapeControlCharactersOnReceive="off"
  defaultNetstreamDriver="ossl"
  defaultNetstreamDriverCAFile="${certificates.caFile}"
  defaultNetstreamDriverCertFile="${certificates.server.certFile}"
  defaultNetstreamDriverKeyFile="${certificates.server.keyFile}")
module(load="imudp")
module(load="imtcp" maxSessions="500")
module(load="imrelp" tls.tlslib="openssl")
module(load="mmpstrucdata")
module(load="mmnormalize")

template(name="json_line" type="list" option.jsonf="on") {
  property(outname="timestamp" name="timereported" dateFormat="rfc3339" format="jsonf")
${properties.map(([name, of]) => `  property(outname="${name}" name="${of}" format="jsonf")`).join('\n')}
}

ruleset(name="record") {
  action(type="mmpstrucdata" sd_name.lowercase="off")
${decodeCef(quoted('cef.rulebase'))}
  action(type="omfile" file=${quoted('records.ndjson')} template="json_line"
    asyncWriting="off" flushOnTXEnd="on")
}

# imrelp answers once a message is in the queue of its ruleset: without one, once it is written.
ruleset(name="answered" queue.type="Direct") { call record }

${inputs(options)}

action(type="omfile" file=${quoted('own.log')})
`;
}

// CEF is the message of RFC 5424, or starts at the tag of RFC 3164 (rsyslog then treats "CEF:" as the tag), or is the
// whole line without any syslog header. liblognorm 2.0.6 skips one character after the header, expecting the blank that
// its own examples have there; the standard has none (its examples: `|10|src=…`), so a blank is inserted, else the
// first key loses its first character.
function decodeCef(ruleBase: string): string {
  return `  set $.cef = "";
  if ($msg startswith "CEF:") then { set $.cef = $msg; }
  else if ($rawmsg startswith "CEF:") then { set $.cef = $rawmsg; }
  else if ($syslogtag == "CEF:") then { set $.cef = "CEF:" & ltrim($msg); }
  if ($.cef != "") then {
    set $.header = re_extract($.cef, "${cefHeader}", 0, 0, "");
    if (re_match($.cef, "${cefHeader}[^ ]")) then {
      set $.cef = replace($.cef, $.header, $.header & " ");
    }
    action(type="mmnormalize" ruleBase=${ruleBase} variable="$.cef" path="$!decoded")
  }`;
}

// Seven fields that end in a pipe, in which a backslash takes the next character along; twice escaped
// for rsyslog's strings.
const cefHeader = String.raw`^CEF:(([^|\\]|\\\\.)*\\|){7}`;

function inputs(options: RsyslogConfigOptions): string {
  const authMode = options.clientCertificates ? 'x509/certvalid' : 'anon';
  const local = 'address="127.0.0.1"';
  const common = `${local} ruleset="record"`;
  const { caFile, server } = options.certificates;
  const relp = `maxDataSize="${options.maxMessage}" oversizeMode="${options.oversizeMode}"`;
  return `input(type="imudp" ${common} port="${options.udpPort}" name="udp")
input(type="imtcp" ${common} port="${options.tcpPort}" name="tcp"
  streamDriver.name="ptcp" streamDriver.mode="0")
input(type="imtcp" ${common} port="${options.tlsPort}" name="tls"
  streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="${authMode}")
input(type="imrelp" ${local} ruleset="answered" ${relp} port="${options.relpPort}" name="relp")
input(type="imrelp" ${local} ruleset="answered" ${relp} port="${options.relpsPort}" name="relps" tls="on"
  tls.caCert="${caFile}" tls.myCert="${server.certFile}" tls.myPrivKey="${server.keyFile}"${
    options.clientCertificates ? ' tls.authMode="certvalid"' : ''
  })`;
}
