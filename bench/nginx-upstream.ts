// The static upstream (upstream-server.ts) served by nginx, if NGINX_PROGRAM names it or it is on PATH: the server has
// no code of ours. Usage: nginx-upstream.ts PAGES. Prints its port; it ends with its input.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pageBody } from './work.ts';

const command = process.env.NGINX_PROGRAM ?? 'nginx';
const lookEveryMs = 20;

/** The helper that serves the static upstream here. */
export function upstreamScript(): string {
  const installed = spawnSync(command, ['-v']).error === undefined;
  return installed ? './nginx-upstream.ts' : './upstream-server.ts';
}

/** A port that is free just now: nginx cannot report a port of its own choice. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function configOf(dir: string, port: number): string {
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `daemon off; master_process off; pid ${dir}/pid; error_log stderr;
events {}
http {
  ${places.map((place) => `${place}_temp_path ${dir}/temp;`).join(' ')}
  access_log off; default_type application/json; keepalive_requests 1000000; sendfile on;
  server {
    listen 127.0.0.1:${port};
    root ${dir};
    location = /audit/events {
      set $page 0;
      if ($arg_cursor) { set $page $arg_cursor; }
      rewrite ^ /page-$page break;
    }
  }
}
`;
}

async function isUp(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function serve(pages: number): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-nginx-'));
  const port = await freePort();
  for (let page = 0; page < pages; page += 1) {
    writeFileSync(join(dir, `page-${page}`), pageBody(page, page === pages - 1));
  }
  writeFileSync(join(dir, 'nginx.conf'), configOf(dir, port));
  const nginx = spawn(command, ['-e', 'stderr', '-p', dir, '-c', join(dir, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const end = () => {
    nginx.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
    process.exit(0);
  };
  nginx.once('error', end);
  nginx.once('close', end);
  process.once('SIGTERM', end);
  process.stdin.resume().once('end', end);
  while (!(await isUp(port))) await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  process.stdout.write(`${port}\n`);
}

if (import.meta.main) await serve(Number(process.argv[2]));
