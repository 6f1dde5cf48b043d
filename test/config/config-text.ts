// Configs as text, with everything in place that a test is not about: a test puts in what it is about, and knows on
// which line that stands, since each section begins where it says so.

import { ConfigError, parseConfig, type Surroundings } from '../../src/config/config.ts';

/** Sections as YAML lines below their key; each replaces the one that is there otherwise. */
export interface Sections {
  readonly upstreams?: string;
  readonly sources?: string;
  readonly sinks?: string;
  /** Whole sections, put at the top. */
  readonly top?: string;
}

const usual = {
  upstreams:
    '  edge: { api: unified, base_url: "https://api.example.com/v1", auth: { api_key: k } }\n' +
    '  ops: { api: services, base_url: "https://svc.example.com", companies: [c-1, c-2],' +
    ' auth: { client_id: i, client_secret: s, scope: "urn:x" } }',
  sources: '  audit: { type: audit_events, upstream: edge }',
  sinks: '  screen: { type: stdout }',
};

/** A config with these sections; `top` comes first, so that its lines count from 1. */
export function aConfig({ top = '', ...sections }: Sections = {}): string {
  const { upstreams, sources, sinks } = { ...usual, ...sections };
  const begin = top === '' ? '' : `${top.trimEnd()}\n`;
  return `${begin}upstreams:\n${upstreams}\nsources:\n${sources}\nsinks:\n${sinks}\n`;
}

/** A config whose section `key` stands first, its content from line 2 on. */
export function withFirst(key: 'upstreams' | 'sources' | 'sinks', content: string): string {
  const { [key]: _, ...rest } = usual;
  const others = Object.entries(rest).map(([name, text]) => `${name}:\n${text}\n`);
  return `${key}:\n${content.trimEnd()}\n${others.join('')}`;
}

/** An environment and files for a config. */
export function configEnv(
  env: Surroundings['env'] = {},
  files: Readonly<Record<string, string>> = {},
): Surroundings {
  return {
    env,
    readFile(path) {
      const text = Object.hasOwn(files, path) ? files[path] : undefined;
      if (text === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' });
      return Buffer.from(text);
    },
  };
}

/** What is wrong with a config, line by line as it is printed; empty when nothing is. Other errors are thrown on. */
export function flawLines(
  text: string,
  surroundings: Surroundings = configEnv(),
): readonly string[] {
  try {
    parseConfig(text, 'c.yaml', surroundings);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
}
