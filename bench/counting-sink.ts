// Usage: counting-sink.ts tcp|lines|relp|http|otlp|bulk|hec [PORT]. A receiver in a process of its own that only
// counts. `tcp`: octet-counted frames on a stream. `lines`: lines on a stream. `relp`: RELP, each message of one line
// acknowledged. `http`: requests, each answered with an empty success. `otlp`: the same, counting the bench's events in
// them, which are not compressed. `bulk`: requests of Elasticsearch's `_bulk`, each event answered as created. `hec`:
// requests of Splunk's HTTP Event Collector, indexed at once. Prints its port, then the count for each line on its
// input.

import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';

let counted = 0;

function countFrames(socket: Socket): void {
  // What is left of the frame under way, and the digits of the length being read.
  let left = 0;
  let length = 0;
  socket.on('data', (chunk: Buffer) => {
    let at = 0;
    while (at < chunk.length) {
      if (left > 0) {
        const step = Math.min(left, chunk.length - at);
        left -= step;
        at += step;
        if (left === 0) counted += 1;
        continue;
      }
      const byte = chunk[at] ?? 0;
      at += 1;
      if (byte === 0x20) {
        left = length;
        length = 0;
      } else length = length * 10 + (byte - 0x30);
    }
  });
  socket.on('error', () => undefined);
}

function countLines(socket: Socket): void {
  socket.on('data', (chunk: Buffer) => {
    for (let at = chunk.indexOf(0x0a); at !== -1; at = chunk.indexOf(0x0a, at + 1)) counted += 1;
  });
  socket.on('error', () => undefined);
}

/** Answers all frames that have come; no message has an LF in it. */
function answerRelp(socket: Socket): void {
  let rest = '';
  socket.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    let answers = '';
    for (const line of lines) {
      const [txnr, command] = line.split(' ', 2);
      if (command === 'open') answers += `${txnr} rsp 22 200 OK\ncommands=syslog\n`;
      else if (command === 'syslog') {
        counted += 1;
        answers += `${txnr} rsp 6 200 OK\n`;
      }
    }
    if (answers !== '') socket.write(answers);
  });
  socket.on('error', () => undefined);
}

/** Each event has this attribute once. */
const eventKey = 'original_event_uid';

/** Says of each request that it was taken. */
function answerOtlp(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => {
    const body = Buffer.concat(chunks);
    for (let at = body.indexOf(eventKey); at >= 0; at = body.indexOf(eventKey, at + 1))
      counted += 1;
    response.setHeader('content-type', 'application/x-protobuf');
    response.end();
  });
}

/** Says of each event of a bulk request that it was created. */
function answerBulk(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => {
    const sent = Buffer.concat(chunks);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    const ids =
      body.toString('latin1').match(/(?<=^\{"create":\{"_index":"[^"]*","_id":")\w+/gm) ?? [];
    counted += ids.length;
    const items = ids.map((_id) => ({ create: { _id, status: 201 } }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ errors: false, items }));
  });
}

/** Acknowledges each request, and reports each polled one as indexed. */
function answerHec(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => {
    response.setHeader('content-type', 'application/json');
    if (request.url?.endsWith('/ack')) {
      const { acks } = JSON.parse(Buffer.concat(chunks).toString());
      const said = Object.fromEntries(acks.map((id: number) => [id, true]));
      response.end(JSON.stringify({ acks: said }));
      return;
    }
    response.end(JSON.stringify({ text: 'Success', code: 0, ackId: counted }));
    counted += 1;
  });
}

/** Says of each request that it was taken, whatever is in it. */
function answerEmpty(request: IncomingMessage, response: ServerResponse): void {
  request.resume().once('end', () => {
    counted += 1;
    response.setHeader('content-type', request.headers['content-type'] ?? 'text/plain');
    response.end(request.headers['content-type']?.includes('json') ? '{}' : '');
  });
}

const ways: Readonly<Record<string, (socket: Socket) => void>> = {
  lines: countLines,
  relp: answerRelp,
};
const answers: Readonly<Record<string, typeof answerBulk>> = {
  bulk: answerBulk,
  hec: answerHec,
  otlp: answerOtlp,
  http: answerEmpty,
};
const way = process.argv[2] ?? '';
const answer = answers[way];
const server =
  answer === undefined ? createServer(ways[way] ?? countFrames) : createHttpServer(answer);
server.listen(Number(process.argv[3] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.stdin
  .on('data', () => process.stdout.write(`${counted}\n`))
  .once('end', () => process.exit(0));
