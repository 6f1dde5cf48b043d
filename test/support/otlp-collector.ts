// The OpenTelemetry Collector's own OTLP receiver as a process of its own (otlp-collector/main.go): real gRPC and HTTP of
// another library and language, with the Collector's own words for what it does not take.

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'vitest';
import { endChild, spawnChild } from './children.ts';
import { goProgram } from './go-program.ts';
import { afterThisTest, freePort, waitUntil } from './temp.ts';

/** A running receiver; it ends with the test. */
export interface OtlpCollector {
  /** `http://127.0.0.1:port`. */
  readonly grpc: string;
  /** The logs endpoint. */
  readonly http: string;
  /** `log.record.uid` of each record that it has taken, in order. */
  readonly uids: readonly string[];
}

interface OtlpJson {
  readonly resourceLogs: readonly {
    readonly scopeLogs: readonly {
      readonly logRecords: readonly {
        readonly attributes: readonly {
          readonly key: string;
          readonly value: { readonly stringValue?: string };
        }[];
      }[];
    }[];
  }[];
}

/** Starts one; skips the calling test, with the reason, if it cannot be built. */
export async function startOtlpCollector({ skip }: TestContext): Promise<OtlpCollector> {
  const program = await goProgram(join(import.meta.dirname, 'otlp-collector')).catch(
    (error: unknown): never =>
      skip(`no Collector: ${error instanceof Error ? error.message : error}`),
  );
  const [grpc, http] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const child = spawnChild(program, [grpc, http], { stdio: ['ignore', 'pipe', 'inherit'] });
  afterThisTest(() => endChild(child));
  const uids: string[] = [];
  let isUp = false;
  createInterface({ input: child.stdout ?? process.stdin }).on('line', (line) => {
    if (isUp) uids.push(...uidsOf(JSON.parse(line)));
    isUp = true;
  });
  await waitUntil(() => isUp, { what: 'the Collector to listen' });
  return { grpc: `http://${grpc}`, http: `http://${http}/v1/logs`, uids };
}

function uidsOf({ resourceLogs }: OtlpJson): readonly string[] {
  const records = resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) => logRecords),
  );
  return records.map(
    ({ attributes }) =>
      attributes.find(({ key }) => key === 'log.record.uid')?.value.stringValue ?? 'none',
  );
}
