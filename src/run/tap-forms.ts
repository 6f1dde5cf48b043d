// The forms and filters of the live tail. A form is a line for people, a format with its defaults, or the output for a
// sink: its format, after its routes' filters, redaction and masks. A form that belongs to no sink has the masks of all
// routes of the source. The filter is a route's `where`, so that one can be tried here before it is added to the config.
// Any reader of the status can set the filter, so expressions that can take long on one event are refused.

import { z } from 'zod';
import { type Config, formats } from '../config/index.ts';
import type { FormatChoice } from '../contracts/config.ts';
import { type Event, ExportError, errorText, type Format } from '../contracts/index.ts';
import { maskRoutes, type Selection, selectionFor } from '../send/index.ts';
import { readable } from '../terminal/index.ts';
import { compileFilter } from '../tools/index.ts';
import type { WholePlan } from './plan.ts';

/** How events are shown. */
export interface Form {
  readonly format: Format;
  /** The shown events of a source; null: none. */
  selectionFor(source: string): Selection | null;
}

/** Every form by name, created on request. */
export type Forms = ReadonlyMap<string, () => Form>;

/** The forms of a config. */
export function formsOf(config: Config, { routes }: Pick<WholePlan, 'routes'>): Forms {
  const masks = maskRoutes(routes);
  const everything = (format: Format): Form => ({
    format,
    selectionFor: remembered((source) =>
      selectionFor(masks(source), { source, sink: '' }, () => {}),
    ),
  });
  // A record as sent cannot be masked, so no event of its source is shown.
  const original = (format: Format): Form => ({
    format,
    selectionFor: (source) =>
      masks(source).length > 0 ? null : selectionFor([], { source, sink: '' }, () => {}),
  });
  const behindRoutes = (sink: string, format: Format): Form => ({
    format,
    selectionFor: remembered((source) => selectionFor(routes, { source, sink }, () => {})),
  });
  return new Map<string, () => Form>([
    ['readable', () => everything(readable)],
    ...formats
      .filter(({ shape }) => shape !== 'rows')
      .map(({ type }) => [type, () => everything(textFormat(usualChoice(type)))] as const),
    ['original', () => original(textFormat({ ...usualChoice('json'), schema: 'original' }))],
    ...Object.entries(config.sinks).map(
      ([name, { format }]) =>
        [`sink ${name}`, () => behindRoutes(name, textFormat(format))] as const,
    ),
  ]);
}

function remembered(make: (source: string) => Selection | null): Form['selectionFor'] {
  const known = new Map<string, Selection | null>();
  return (source) => {
    const selection = known.has(source) ? (known.get(source) ?? null) : make(source);
    known.set(source, selection);
    return selection;
  };
}

/** Throws an ExportError where there is no such form. */
export function openForm(forms: Forms, name: string): Form {
  const make = forms.get(name);
  if (make === undefined) throw unusable('form: there is none of this name');
  return make();
}

/** A format with its defaults. */
export function usualChoice(type: string): FormatChoice {
  const fields = formats.find((format) => format.type === type)?.fields ?? {};
  return { ...z.strictObject(fields).parse({}), type };
}

/** The format, as text where it has the choice. */
export function textFormat(choice: FormatChoice): Format {
  const definition = formats.find(({ type }) => type === choice.type);
  if (definition === undefined) throw unusable(`form: there is no format ${choice.type}`);
  return definition.make(
    'encoding' in definition.fields ? { ...choice, encoding: 'json' } : choice,
  );
}

/** The result of a filter for an event. `unjudged`: the filter failed, and a route would pass the event. */
export type Judge = (event: Event) => 'passes' | 'stays' | 'unjudged';

const whereLengthMax = 500;
/** Regular expressions and nested loops can take very long on one event. */
const dear = /\bmatches\b/;
const loops = /\b(?:all|exists|exists_one|filter|map|sortBy)\b/g;
const loopsMax = 1;

/** Compiles a `where`; empty: all pass. Throws an ExportError for no CEL, or a slow one. */
export function judgeOf(where: string): Judge {
  if (where.trim() === '') return () => 'passes';
  if (where.length > whereLengthMax) {
    throw unusable(`where: longer than ${whereLengthMax} characters`);
  }
  if (dear.test(where)) throw unusable('where: matches() is not offered here; try contains()');
  if ([...where.matchAll(loops)].length > loopsMax) {
    throw unusable('where: only one of all, exists, filter and map is offered here');
  }
  let failures = 0;
  const passes = compiled(where, () => {
    failures += 1;
  });
  return (event) => {
    const before = failures;
    const passed = passes(event);
    if (failures > before) return 'unjudged';
    return passed ? 'passes' : 'stays';
  };
}

function compiled(where: string, failed: () => void) {
  try {
    return compileFilter(where, failed);
  } catch (error) {
    const [what] = errorText(error).split('\n', 1);
    throw unusable(`where: ${what}`);
  }
}

function unusable(message: string): ExportError {
  return new ExportError('config_invalid', message, { next: 'Request something else.' });
}
