// `sluice top`: the status of the running process, redrawn in place each second until `q` or Ctrl-C. It polls the
// process's own status server for current facts; if there is none, `sluice status` reads the state directory. Without a
// terminal it writes one screen and ends. Invariant: however it ends, the terminal is as before.

import type { Config } from '../config/index.ts';
import { listenForShutdown } from '../run/index.ts';
import { painted } from '../terminal/index.ts';
import { cleanText, systemClock } from '../tools/index.ts';
import { askRunning, type StatusReply } from '../watch/running-status.ts';
import { readConfigAtWork } from './shared/at-work.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { frameLines } from './shared/top-frame.ts';

const everyMs = 1_000;
/** Without a terminal all lines are written. */
const rowsOfFile = 1_000;
/** A terminal of unknown size reports 0. */
const rowsUsual = 24;

/** Shows the status until stopped. 0; 3 if no process answers. */
export const top = defineCommand({
  name: 'top',
  about: 'watch the running process; q quits',
  options: { config: configOption },
  async run({ config: file }, deps) {
    const { config } = readConfigAtWork(file, deps);
    const first = await askRunning(config);
    if (first.outcome !== 'answered') {
      for (const line of silenceLines(first)) deps.err(line);
      return 3;
    }
    if (!process.stdout.isTTY) {
      for (const line of linesOf(first, rowsOfFile)) deps.out(line);
      return 0;
    }
    const shutdown = listenForShutdown(() => deps.exit(1));
    const quit = listenForQuit();
    const stop = AbortSignal.any([shutdown.stop, quit.stop, deps.unread]);
    try {
      await follow(first, config, stop);
      return 0;
    } finally {
      quit.release();
      shutdown.release();
    }
  },
});

// ECMA-48 and xterm: the alternate screen keeps the earlier content, and without wrapping the terminal itself cuts a
// long line at the edge: it knows the width of each character.
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const eraseLine = '\u001b[K';
const eraseBelow = '\u001b[J';

async function follow(first: StatusReply, config: Config, stop: AbortSignal): Promise<void> {
  const clock = systemClock();
  let asked = first;
  let shown = first;
  const draw = () => {
    const rows = process.stdout.rows || rowsUsual;
    const lines = linesOf(shown, Math.max(1, rows - 2));
    const foot = asked === shown ? ['q quits'] : silenceLines(asked);
    const all = [...lines, '', painted(foot.join('  '), asked === shown ? 'dim' : 'bad')];
    const text = all.map((line) => `${line}${eraseLine}`).join('\r\n');
    process.stdout.write(`${home}${text}${eraseBelow}`);
  };
  const restore = () => void process.stdout.write(leave);
  // Also when a second signal or a fault of ours ends the process in the middle.
  process.once('exit', restore);
  process.stdout.write(enter);
  process.stdout.on('resize', draw);
  try {
    while (!stop.aborted) {
      draw();
      await clock.sleep(everyMs, stop).catch(() => undefined);
      if (stop.aborted) break;
      asked = await askRunning(config, stop);
      // The last known status stays on the screen while no response arrives.
      if (asked.outcome === 'answered') shown = asked;
    }
  } finally {
    process.stdout.off('resize', draw);
    process.off('exit', restore);
    restore();
  }
}

function linesOf(asked: StatusReply, rows: number): readonly string[] {
  if (asked.outcome !== 'answered') return silenceLines(asked);
  return frameLines(asked.status, rows);
}

function silenceLines(asked: StatusReply): readonly string[] {
  if (asked.outcome === 'answered') return [];
  return [cleanText(asked.why, 300), cleanText(asked.next, 300)];
}

/** The keys that end it: in raw mode the terminal hands over Ctrl-C as a key. */
function listenForQuit(): { readonly stop: AbortSignal; release(): void } {
  const quit = new AbortController();
  const { stdin } = process;
  if (!stdin.isTTY) return { stop: quit.signal, release: () => undefined };
  const received = (keys: Buffer) => {
    if (/[qQ\u0003\u0004]/.test(keys.toString('latin1'))) quit.abort(new Error('stop requested'));
  };
  stdin.setRawMode(true);
  stdin.on('data', received);
  return {
    stop: quit.signal,
    release: () => {
      stdin.off('data', received);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
