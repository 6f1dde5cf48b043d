// The files of the status page, read once: they do not change under a running program. There is no build step; the
// chart library is served as its package contains it. The files contain no data, so any client that may know the server
// may read them.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** A file with its headers. */
export interface PageFile {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

const types = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
} as const;

const own: readonly (readonly [name: string, type: keyof typeof types])[] = [
  ['colours.css', 'css'],
  ['layout.css', 'css'],
  ['journey.css', 'css'],
  ['charts.css', 'css'],
  ['parts.css', 'css'],
  ['tail.css', 'css'],
  ['icon.svg', 'svg'],
  ['page.js', 'js'],
  ['charts.js', 'js'],
  ['cluster.js', 'js'],
  ['dom.js', 'js'],
  ['feed.js', 'js'],
  ['journey.js', 'js'],
  ['parts.js', 'js'],
  ['tail.js', 'js'],
  ['theme.js', 'js'],
  ['units.js', 'js'],
];

/** All files, by path. */
export function readPageFiles(): ReadonlyMap<string, PageFile> {
  const file = (place: string | URL, type: keyof typeof types): PageFile => ({
    body: readFileSync(place),
    headers: { 'content-type': types[type] },
  });
  const ours = (name: string) => new URL(`./page/${name}`, import.meta.url);
  const require = createRequire(import.meta.url);
  return new Map([
    ['/', file(ours('index.html'), 'html')],
    ...own.map(([name, type]) => [`/${name}`, file(ours(name), type)] as const),
    ['/uplot.js', file(require.resolve('uplot/dist/uPlot.iife.min.js'), 'js')],
    ['/uplot.css', file(require.resolve('uplot/dist/uPlot.min.css'), 'css')],
  ]);
}
