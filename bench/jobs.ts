// What is measured: audit pages in, and each kind of delivery out. A job names the sinks of its
// config and the floor that it is held against (floor.ts).

import { signingKeyText } from '../src/archive/note.ts';
import type { Floors } from './floor.ts';
import { upstreamScript } from './nginx-upstream.ts';
import { type Helper, inDirectory, runOnce, startHelper, type Usage } from './program.ts';
import { pageEvents } from './work.ts';

const signingKey = signingKeyText('bench', Buffer.alloc(32, 1));

/** The addresses of a run's receivers. */
interface FarSides {
  readonly dir: string;
  readonly tcp: number;
  readonly http: number;
}

/** One kind of work. */
export interface Job {
  readonly name: string;
  readonly floor: keyof Floors;
  /** Octet-counted frames that arrive for each event. */
  readonly frames: number;
  readonly sinks: (far: FarSides) => string;
  /** More settings of the state, for each run. Default: none. */
  readonly state?: () => string;
}

const cef = ({ tcp }: FarSides) =>
  `siem: { type: syslog, address: "tcp://127.0.0.1:${tcp}", resend_window: 500ms, format: cef }`;
const json = ({ tcp }: FarSides) =>
  `text: { type: syslog, address: "tcp://127.0.0.1:${tcp}", resend_window: 500ms, format: json }`;
const original = ({ dir }: FarSides) =>
  `disk: { type: file, path: ${dir}/events.ndjson, format: { type: json, schema: original } }`;
const otlp = ({ http }: FarSides) =>
  `otel: { type: otlp, url: "http://127.0.0.1:${http}/v1/logs", compression: gzip }`;

const archive = ({ dir }: FarSides) =>
  `proof: { type: archive, location: ${dir}/archive, signing_key: "${signingKey}" }`;

/** All jobs, the main one first. */
export const jobs: readonly Job[] = [
  { name: 'CEF in RFC 5424 over TCP', floor: 'cef', frames: 1, sinks: cef },
  { name: 'JSON (OCSF) over TCP', floor: 'json', frames: 1, sinks: json },
  { name: 'JSON (original) to file', floor: 'original', frames: 0, sinks: original },
  {
    name: 'JSON (original) to file, and archived',
    floor: 'archived',
    frames: 0,
    sinks: (far) => [original, archive].map((sink) => sink(far)).join('\n  '),
  },
  { name: 'OTLP (protobuf, gzip)', floor: 'otlp', frames: 0, sinks: otlp },
  {
    name: 'all four at once',
    floor: 'all',
    frames: 2,
    sinks: (far) => [cef, json, original, otlp].map((sink) => sink(far)).join('\n  '),
  },
];

/** A config that reads the bench's upstream into these sinks. */
export function configOf(dir: string, upstream: number, sinks: string, state = ''): string {
  return `state: { dir: ${dir}/state${state} }
upstreams:
  edge: { api: unified, ends: never, base_url: "http://127.0.0.1:${upstream}", allow_http: true, auth: { api_key: bench } }
sources:
  audit: { type: audit_events, upstream: edge, every: 30s, page_limit: ${pageEvents}, path: /audit/events }
sinks:
  ${sinks}
`;
}

/** Runs a job over so many pages. Throws where not everything arrived. */
export async function runJob(job: Job, pages: number): Promise<Usage> {
  const helpers: Helper[] = [];
  const start = async (script: string, ...args: string[]) => {
    const helper = await startHelper(script, ...args);
    helpers.push(helper);
    return helper;
  };
  try {
    const upstream = await start(upstreamScript(), String(pages));
    const tcp = await start('./counting-sink.ts', 'tcp');
    const http = await start('./counting-sink.ts', 'http');
    return await inDirectory(async (dir) => {
      const far = { dir, tcp: tcp.port, http: http.port };
      const usage = await runOnce(configOf(dir, upstream.port, job.sinks(far), job.state?.()), dir);
      const arrived = Number(await tcp.ask());
      const expected = job.frames * pages * pageEvents;
      if (arrived !== expected) throw new Error(`${arrived} frames arrived, not ${expected}`);
      return usage;
    });
  } finally {
    for (const { child } of helpers) child.kill();
  }
}
