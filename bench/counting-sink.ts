// A TCP receiver in a process of its own that counts bytes and octet-counted frames, and nothing else.
// Prints its port, then the count of frames whenever its input asks for it with a line.

import { type AddressInfo, createServer } from 'node:net';

let frames = 0;

const server = createServer((socket) => {
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
        if (left === 0) frames += 1;
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
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.stdin
  .on('data', () => process.stdout.write(`${frames}\n`))
  .once('end', () => process.exit(0));
