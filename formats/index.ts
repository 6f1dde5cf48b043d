// The list of formats. To add one: its file, its line here, its test; the engine, the command line, the reference and
// the contract suite take it from this list.

import type { FormatDefinition } from '../src/contracts/definition.ts';
import { cef } from './cef.ts';
import { json } from './json.ts';
import { otel } from './otel.ts';
import { syslog } from './syslog.ts';

/** Every format, in the order of the reference. */
export const formats: readonly FormatDefinition[] = [json, syslog, cef, otel];
