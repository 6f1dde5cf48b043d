// Pages of a real Chromium, driven through the DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/) over its WebSocket. It records forbidden actions of a page:
// console errors, exceptions, requests to another origin.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { spawnChild } from './children.ts';
import { findChromium } from './chromium-program.ts';
import { runDir } from './once-per-run.ts';
import { afterThisTest, patienceMs, waitUntil } from './temp.ts';

/** A page in the browser. */
export interface BrowserPage {
  /** Console messages of level error or warning, and uncaught exceptions. */
  readonly complaints: readonly string[];
  /** Addresses of all requests so far. */
  readonly requests: readonly string[];
  open(url: string): Promise<void>;
  /** The value of an expression in the page; promises are awaited. */
  evaluate<T>(expression: string): Promise<T>;
  /** Waits until the expression is true in the page; default 10 seconds. */
  waitFor(expression: string, timeoutMs?: number): Promise<void>;
  press(key: 'Tab' | 'Enter'): Promise<void>;
  /** Sets the window's size in CSS pixels and the colours that the system prefers. */
  look(width: number, height: number, scheme: 'light' | 'dark'): Promise<void>;
  /** Saves the whole page, as long as it is, as PNG. */
  screenshot(file: string): Promise<void>;
}

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...['--hide-scrollbars', '--disable-dev-shm-usage', '--remote-debugging-port=0'],
];

let browser: Promise<string> | null = null;

/**
 * Opens an empty page with cookies, storage and credentials of its own, as if its browser had just been installed. It
 * closes with the test. The browser is started once for a process of the tests, and ends with it.
 */
export async function startBrowser(): Promise<BrowserPage> {
  browser ??= startChromium();
  const { socket, call } = await connected(await browser, () => undefined);
  const { browserContextId = '' } = await call('Target.createBrowserContext');
  afterThisTest(async () => {
    await call('Target.disposeBrowserContext', { browserContextId });
    socket.close();
  });
  const wanted = { url: 'about:blank', browserContextId };
  const { targetId = '' } = await call('Target.createTarget', wanted);
  return await attach((await browser).replace(/browser\/.*/, `page/${targetId}`));
}

/** Starts a browser; resolves to the address of its DevTools socket. */
async function startChromium(): Promise<string> {
  const { command, libraryDirs } = await findChromium();
  const ownDir = (name: string) => mkdtempSync(join(runDir(), name));
  const child = spawnChild(
    command,
    [...flags, `--user-data-dir=${ownDir('chromium-')}`, 'about:blank'],
    {
      env: { PATH: process.env.PATH, HOME: ownDir('home-'), LD_LIBRARY_PATH: libraryDirs },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  child.unref();
  if (!(child.stderr instanceof Socket)) throw new Error('starting Chromium: no pipe to it');
  child.stderr.unref();
  const said: string[] = [];
  const lines = createInterface({ input: child.stderr }).on('line', (line) => said.push(line));
  const socketOf = () =>
    said.map((line) => /^DevTools listening on (ws:\S+)/.exec(line)?.[1]).find(Boolean);
  const what = () => `Chromium to listen; it said: ${said.slice(-5).join('\n')}`;
  const address = await waitUntil(socketOf, { what });
  lines.resume();
  return address;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  // The protocol's own shapes; each is read where it is used.
  readonly params?: object;
  readonly result?: Record<string, never>;
  readonly error?: { readonly message: string };
}

type Call = (method: string, params?: object) => Promise<Record<string, never>>;

async function connected(address: string, notice: (message: Message) => void) {
  const socket = new WebSocket(address);
  await once(socket, 'open');
  const answers = new Map<number, (message: Message) => void>();
  socket.addEventListener('message', ({ data }) => {
    const message: Message = JSON.parse(String(data));
    if (message.id !== undefined) answers.get(message.id)?.(message);
    else notice(message);
  });
  let lastId = 0;
  const call: Call = async (method, params = {}) => {
    lastId += 1;
    const answered = new Promise<Message>((resolve) => answers.set(lastId, resolve));
    socket.send(JSON.stringify({ id: lastId, method, params }));
    const { error, result = {} } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  return { socket, call };
}

async function attach(address: string): Promise<BrowserPage> {
  const complaints: string[] = [];
  const requests: string[] = [];
  const { call } = await connected(address, (message) => note(message, complaints, requests));
  for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await call(`${domain}.enable`);
  return pageOf(call, complaints, requests);
}

function note({ method, params }: Message, complaints: string[], requests: string[]): void {
  const text = JSON.stringify(params);
  const {
    type,
    entry,
    request,
  }: { type?: string; entry?: { level: string }; request?: { url: string } } = params ?? {};
  if (method === 'Network.requestWillBeSent' && request) requests.push(request.url);
  if (method === 'Runtime.exceptionThrown') complaints.push(text);
  if (method === 'Runtime.consoleAPICalled' && /^(error|warning|assert)$/.test(type ?? ''))
    complaints.push(text);
  if (method === 'Log.entryAdded' && entry?.level === 'error') complaints.push(text);
}

function pageOf(
  call: Call,
  complaints: readonly string[],
  requests: readonly string[],
): BrowserPage {
  const evaluate = async <T>(expression: string): Promise<T> => {
    const answer: { result?: { value: T }; exceptionDetails?: object } = await call(
      'Runtime.evaluate',
      { expression, awaitPromise: true, returnByValue: true },
    );
    if (answer.exceptionDetails !== undefined || answer.result === undefined) {
      throw new Error(`${expression}: ${JSON.stringify(answer.exceptionDetails)}`);
    }
    return answer.result.value;
  };
  return {
    complaints,
    requests,
    evaluate,
    async open(url) {
      await call('Page.navigate', { url });
      await waitUntil(
        () =>
          evaluate<boolean>(
            `document.readyState === 'complete' && location.href.startsWith(${JSON.stringify(url)})`,
          ),
        { what: `${url} to load` },
      );
    },
    async waitFor(expression, timeoutMs = patienceMs) {
      const text = () => evaluate<string>('document.body.innerText');
      await waitUntil(() => evaluate<boolean>(expression), {
        what: expression,
        timeoutMs,
        everyMs: 50,
      }).catch(async (error) => {
        throw new Error(`${error.message}; the page reads:\n${await text()}`);
      });
    },
    async press(key) {
      const code = { Tab: 9, Enter: 13 }[key];
      const text = key === 'Enter' ? { text: '\r' } : {};
      const stroke = { key, code: key, windowsVirtualKeyCode: code, ...text };
      await call('Input.dispatchKeyEvent', { type: 'keyDown', ...stroke });
      await call('Input.dispatchKeyEvent', { type: 'keyUp', ...stroke });
    },
    async look(width, height, scheme) {
      await call('Emulation.setDeviceMetricsOverride', {
        ...{ width, height, deviceScaleFactor: 1, mobile: width < 600 },
      });
      await call('Emulation.setEmulatedMedia', {
        features: [{ name: 'prefers-color-scheme', value: scheme }],
      });
    },
    async screenshot(file) {
      const { data }: { data?: string } = await call('Page.captureScreenshot', {
        captureBeyondViewport: true,
      });
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, Buffer.from(data ?? '', 'base64'));
    },
  };
}
