// A RELP server that misbehaves as the test says, for faults that rsyslogd cannot show: it answers out of order,
// refuses messages, resets after it took one, keeps silent, ends in the middle of an answer. It is strict about what it
// reads: a frame that is none, a message before `open`, a TXNR out of turn is a fault.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterThisTest } from './temp.ts';

/** What becomes of a message: the text of its answer, or the end of its connection before or after taking it. */
export type RelpAnswer = string | 'cut' | 'take and cut' | 'half' | 'nothing';

export interface RelpBehaviour {
  /** The answer to `open`; null: none. Default 200 and the offer of syslog. */
  readonly open?: string | null;
  /** The answer to a message. Default `200 OK`. */
  readonly answer?: (message: string) => RelpAnswer;
  /** Answers wait until so many are due and go in the opposite order; a short wait ends it. Default 1. */
  readonly together?: number;
}

export interface RelpReceiver {
  readonly port: number;
  /** Messages that were taken, in order, repeats included. */
  readonly messages: readonly string[];
  readonly faults: readonly string[];
  readonly sessions: number;
  readonly cuts: number;
  /** The most messages that were unanswered at a time. */
  readonly unansweredMost: number;
  behave(behaviour: RelpBehaviour): void;
  /** Writes to every open connection. */
  say(text: string): void;
  close(): Promise<void>;
}

const offers = '200 OK\nrelp_version=0\nrelp_software=test\ncommands=syslog';

/** Starts one on a free loopback port; it ends with the test. */
export async function startRelpReceiver(behaviour: RelpBehaviour = {}): Promise<RelpReceiver> {
  const receiver = new Receiver(behaviour);
  await receiver.listen();
  afterThisTest(() => receiver.close());
  return receiver;
}

class Receiver implements RelpReceiver {
  readonly messages: string[] = [];
  readonly faults: string[] = [];
  port = 0;
  sessions = 0;
  cuts = 0;
  unansweredMost = 0;
  #behaviour: RelpBehaviour;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(behaviour: RelpBehaviour) {
    this.#behaviour = behaviour;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (typeof address === 'object' && address !== null) this.port = address.port;
  }

  behave(behaviour: RelpBehaviour): void {
    this.#behaviour = behaviour;
  }

  say(text: string): void {
    for (const socket of this.#sockets) socket.write(text);
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const session = new Session(this, socket, () => this.#behaviour);
    socket.on('data', (bytes: Buffer) => session.read(bytes));
  }
}

class Session {
  readonly #of: Receiver;
  readonly #socket: Socket;
  readonly #behaviour: () => RelpBehaviour;
  #bytes = Buffer.alloc(0);
  #turn = 1;
  #isOpen = false;
  #due: string[] = [];
  #flush: NodeJS.Immediate | null = null;

  constructor(of: Receiver, socket: Socket, behaviour: () => RelpBehaviour) {
    this.#of = of;
    this.#socket = socket;
    this.#behaviour = behaviour;
  }

  read(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    while (!this.#socket.destroyed && this.#frame()) {
      this.#of.unansweredMost = Math.max(this.#of.unansweredMost, this.#due.length);
    }
  }

  #frame(): boolean {
    const head = /^(\d+) ([a-z]+) (\d+)([ \n])/.exec(this.#bytes.toString('latin1', 0, 60));
    if (head === null) {
      if (this.#bytes.length > 60) this.#fault('no frame');
      return false;
    }
    const length = Number(head[3]);
    const end = head[0].length + (length === 0 ? 0 : length + 1);
    if (this.#bytes.length < end) return false;
    if (this.#bytes[end - 1] !== 0x0a) this.#fault('a frame does not end with LF');
    const data = this.#bytes.toString('utf8', head[0].length, end - 1);
    this.#bytes = this.#bytes.subarray(end);
    if (Number(head[1]) !== this.#turn) this.#fault(`TXNR ${head[1]} for ${this.#turn}`);
    this.#turn += 1;
    this.#take(Number(head[1]), head[2] ?? '', length === 0 ? '' : data);
    return true;
  }

  #take(txnr: number, command: string, data: string): void {
    if (command === 'open') {
      const { open = offers } = this.#behaviour();
      if (this.#isOpen) this.#fault('a second open');
      this.#isOpen = true;
      this.#of.sessions += 1;
      if (open !== null) this.#socket.write(rsp(txnr, open));
    } else if (command === 'close') {
      this.#socket.end(`${rsp(txnr, '')}0 serverclose 0\n`);
    } else if (command === 'syslog' && this.#isOpen) {
      this.#message(txnr, data);
    } else this.#fault(`an unexpected ${command}`);
  }

  #message(txnr: number, message: string): void {
    const { answer = () => '200 OK', together = 1 } = this.#behaviour();
    const given = answer(message);
    if (given === 'nothing') {
      this.#due.push('');
      return;
    }
    if (given === '200 OK' || given === 'take and cut') this.#of.messages.push(message);
    if (given === 'cut' || given === 'take and cut') this.#cut();
    else if (given === 'half') {
      this.#of.cuts += 1;
      this.#socket.end(rsp(txnr, '200 OK').slice(0, -4));
    } else {
      this.#due.push(rsp(txnr, given));
      if (this.#due.length >= together) this.#answer();
      else this.#flush ??= setImmediate(() => setImmediate(() => this.#answer()));
    }
  }

  #answer(): void {
    this.#flush = null;
    const due = this.#due.splice(0).reverse();
    if (!this.#socket.destroyed && due.length > 0) this.#socket.write(due.join(''));
  }

  #cut(): void {
    this.#of.cuts += 1;
    this.#socket.resetAndDestroy();
  }

  #fault(what: string): void {
    this.#of.faults.push(what);
    this.#socket.destroy();
  }
}

function rsp(txnr: number, data: string): string {
  return data === '' ? `${txnr} rsp 0\n` : `${txnr} rsp ${Buffer.byteLength(data)} ${data}\n`;
}
