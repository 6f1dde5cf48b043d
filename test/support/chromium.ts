// A real Chromium with one page, driven through the DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/) over its WebSocket. It records forbidden actions of a page:
// console errors, exceptions, requests to another origin.
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { endChild, spawnChild } from './children.ts';
import { findChromium } from './chromium-program.ts';
import { afterThisTest, patienceMs, tempDir, waitUntil } from './temp.ts';

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

/** Starts a browser with an empty page. It ends with the test. */
export async function startBrowser(): Promise<BrowserPage> {
  const { command, libraryDirs } = await findChromium();
  const child = spawnChild(
    command,
    [...flags, `--user-data-dir=${tempDir('chromium-')}`, 'about:blank'],
    {
      env: { PATH: process.env.PATH, HOME: tempDir('home-'), LD_LIBRARY_PATH: libraryDirs },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  afterThisTest(() => endChild(child, 'SIGKILL'));
  if (!child.stderr) throw new Error('starting Chromium: no pipe to it');
  const said: string[] = [];
  const lines = createInterface({ input: child.stderr }).on('line', (line) => said.push(line));
  const socketOf = () =>
    said.map((line) => /^DevTools listening on (ws:\S+)/.exec(line)?.[1]).find(Boolean);
  const what = () => `Chromium to listen; it said: ${said.slice(-5).join('\n')}`;
  const address = await waitUntil(socketOf, { what });
  lines.resume();
  return await attach(address);
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  // The protocol's own shapes; each is read where it is used.
  readonly params?: object;
  readonly result?: Record<string, never>;
  readonly error?: { readonly message: string };
}

async function attach(address: string): Promise<BrowserPage> {
  const targets = `${address.replace('ws:', 'http:').replace(/\/devtools.*/, '')}/json/list`;
  const list: { type: string; webSocketDebuggerUrl: string }[] = JSON.parse(
    await (await fetch(targets)).text(),
  );
  const socket = new WebSocket(
    list.find(({ type }) => type === 'page')?.webSocketDebuggerUrl ?? '',
  );
  await once(socket, 'open');
  const answers = new Map<number, (message: Message) => void>();
  const complaints: string[] = [];
  const requests: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    const message: Message = JSON.parse(String(data));
    if (message.id !== undefined) answers.get(message.id)?.(message);
    else note(message, complaints, requests);
  });
  let lastId = 0;
  const call = async (method: string, params: object = {}): Promise<Record<string, never>> => {
    lastId += 1;
    const answered = new Promise<Message>((resolve) => answers.set(lastId, resolve));
    socket.send(JSON.stringify({ id: lastId, method, params }));
    const { error, result = {} } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
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
  call: (method: string, params?: object) => Promise<Record<string, never>>,
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
