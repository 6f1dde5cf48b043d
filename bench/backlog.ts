// The cost of a backlog: everything from upstream is read and stored, one sink accepts it and the other is down; then
// the second returns and gets its backlog, which is on disk only by then. Memory must be flat throughout, and an event
// of a long backlog must cost no more than one of a short backlog.

import { once } from 'node:events';
import { configOf } from './jobs.ts';
import { countedOf, inDirectory, startHelper, startSluice } from './program.ts';
import { pageEvents } from './work.ts';

const lookEveryMs = 50;

/** Resident memory in bytes: at a quarter of the backlog, the most from then on, and the most while it is drained. */
export interface BacklogCost {
  readonly quarter: number;
  readonly filling: number;
  readonly draining: number;
  /** CPU microseconds while it is drained, of the whole process. */
  readonly drainingCpuUs: number;
}

/** Measures a backlog of so many pages. */
export async function backlogCost(pages: number): Promise<BacklogCost> {
  const upstream = await startHelper('./upstream-server.ts', String(pages));
  // A port without a listener for now.
  const gone = await startHelper('./counting-sink.ts', 'tcp');
  gone.child.kill();
  await once(gone.child, 'close');
  try {
    return await inDirectory(async (dir) => {
      const sinks = `siem: { type: syslog, address: "tcp://127.0.0.1:${gone.port}", resend_window: 100ms, format: cef, retry: { min: 100ms, max: 200ms } }
  disk: { type: file, path: ${dir}/events.ndjson, format: { type: json, schema: original } }`;
      const { child, said } = startSluice(['run'], configOf(dir, upstream.port, sinks), dir);
      const counted = () => {
        const now = countedOf(child.pid ?? 0);
        if (now === null) throw new Error(`sluice has ended:\n${said.log}`);
        return now;
      };
      const rss = () => counted().rssBytes;
      /** The most memory seen until `done` comes true. */
      const peakUntil = async (done: () => Promise<boolean>) => {
        let peak = 0;
        while (!(await done())) {
          await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
          peak = Math.max(peak, rss());
        }
        return peak;
      };
      await peakUntil(async () => Number(await upstream.ask()) >= pages / 4);
      const quarter = rss();
      const filling = await peakUntil(async () => Number(await upstream.ask()) >= pages);
      // What was just read is still on its way to the disk and to the other sink.
      let heldCpuUs = 0;
      await peakUntil(async () => {
        const before = heldCpuUs;
        heldCpuUs = counted().cpuUs;
        return heldCpuUs === before;
      });
      const back = await startHelper('./counting-sink.ts', 'tcp', String(gone.port));
      const draining = await peakUntil(async () => Number(await back.ask()) >= pages * pageEvents);
      const drainingCpuUs = counted().cpuUs - heldCpuUs;
      child.kill();
      await once(child, 'close');
      back.child.kill();
      return { quarter, filling, draining, drainingCpuUs };
    });
  } finally {
    upstream.child.kill();
  }
}
