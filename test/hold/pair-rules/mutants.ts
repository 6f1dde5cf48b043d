// What the authors of the pair engine could have written instead, each with the rule that it breaks. A text that is no more in
// the code is an error (pair-rules.test.ts), so that the flaws move with it.

/** One flaw. */
export interface Mutant {
  /** What is wrong then. */
  readonly what: string;
  /** Below `src`. */
  readonly file: string;
  /** Stands once in the file. */
  readonly from: string;
  readonly to: string;
  /** The name of the rule that finds it. */
  readonly breaks: string;
}

const versions = 'an equal that turns up later makes them two, and the match is counted no more';

/** All of them. */
export const mutants: readonly Mutant[] = [
  {
    what: 'identities of the new side are forgotten',
    file: 'hold/pair-matching.ts',
    from: 'const own = all.find((row) => isUid(row[side], uid));',
    to: "const own = all.find((row) => side === 'old' && isUid(row[side], uid));",
    breaks:
      'a record that both sides show is delivered once, also if a side shows it again after a restart',
  },
  {
    what: 'identities of the old side are forgotten',
    file: 'hold/pair-matching.ts',
    from: 'const own = all.find((row) => isUid(row[side], uid));',
    to: "const own = all.find((row) => side === 'new' && isUid(row[side], uid));",
    breaks:
      'a record that both sides show is delivered once, also if a side shows it again after a restart',
  },
  {
    what: 'it is cut over before the old side was read to its end',
    file: 'hold/pair-cutover.ts',
    from: '...(unread === null ? [] : [unread]),',
    to: '',
    breaks: 'a cutover is refused as long as the old side was not read to its end',
  },
  {
    what: 'records are matched by time alone',
    file: 'hold/pair-match.ts',
    from: 'if (!isSame(value, there)) return false;',
    to: 'if (one === other) return false;',
    breaks: 'without ids, records of one time with different contents are two',
  },
  {
    what: 'two ids are folded into one',
    file: 'succession/side.ts',
    from: 'const id = source === null ? (parent ?? null) : idText(source);',
    to: 'const id = source === null ? (parent ?? null) : String(Number(idText(source)));',
    breaks: 'two ids that differ in their last digit only are two records',
  },
  {
    what: 'ids of two companies are one',
    file: 'hold/pair-match.ts',
    from: "return typeof company === 'string' && record.company !== null && company !== record.company;",
    to: 'return company === undefined && record.company === undefined;',
    breaks: 'one id in two companies is two records',
  },
  {
    what: 'patience is counted only while the other side answers',
    file: 'hold/pair-brake.ts',
    from: 'if (streams.some((stream) => isFailing(statements, stream))) return patient;',
    to: 'if (streams.some((stream) => isFailing(statements, stream))) return 0;',
    breaks:
      'a record of a side whose other side cannot be read is delivered when its patience is over',
  },
  {
    what: 'patience waits for the other side without a bound',
    file: 'hold/pair-brake.ts',
    from: 'return Math.max(late, Math.min(patient, reachedBy(statements, streams) - 1));',
    to: 'return Math.min(late, patient, reachedBy(statements, streams) - 1);',
    breaks:
      'a record of a side whose other side reports nothing is delivered after three of its polls',
  },
  {
    what: 'a short patience does not wait for the other side',
    file: 'hold/pair-brake.ts',
    from: 'return Math.max(late, Math.min(patient, reachedBy(statements, streams) - 1));',
    to: 'return late < 0 ? late : patient;',
    breaks:
      'ids that never match: none is delivered before the other side was read past it, and then the brake holds',
  },
  {
    what: 'a record that was delivered is matched and delivered again',
    file: 'hold/pair-matching.ts',
    from: "return same.state === 0 ? 'drop' : 'deliver';",
    to: "return same.state === 2 ? 'drop' : 'deliver';",
    breaks:
      'a record that was delivered after its patience is not delivered again by the other side',
  },
  {
    what: 'an event stands for several records',
    file: 'hold/pair-match.ts',
    from: "!isFar(row) && typeof row.counterpart !== 'number'",
    to: '!isFar(row)',
    breaks: 'one event stands for one record only',
  },
  {
    what: 'other versions are decided at once',
    file: 'hold/pair-matching.ts',
    from: "    return 'wait';",
    to: `    const event = others.find((row) => row.state === 0);
    if (event !== undefined) this.#rows.leaveOut(id, Number(event.id));
    return 'wait';`,
    breaks:
      'a record with a value that differs is decided when its patience is over, and no earlier',
  },
  {
    what: 'the bytes of a record that is left out are forgotten',
    file: 'hold/pair-rows.ts',
    from: '    this.#keep(id, 1);',
    to: '    this.#unwait(id);',
    breaks: `${versions}; with a restart: false`,
  },
  {
    what: 'a record that is left out stays so when an equal turns up',
    file: 'hold/pair-matching.ts',
    from: '    this.#rows.part(row, counterpart);',
    to: '',
    breaks: `${versions}; with a restart: true`,
  },
  {
    what: 'a match that is undone stays counted',
    file: 'hold/pair-matching.ts',
    from: 'if (counterpart !== undefined) uncountMatch(state, matchOfRows(row, counterpart));',
    to: '',
    breaks: `${versions}; with a restart: false`,
  },
  {
    what: 'the bytes of records that are left out stay for ever',
    file: 'hold/pair-rows.ts',
    from: 'if (Number(at) > until && this.keptBytes <= bytesMax) return;',
    to: 'if (Number(at) > 0) return;',
    breaks: 'the bytes of a record that is left out count, and go when the overlap is over',
  },
  {
    what: 'the bytes of records that are left out have no bound',
    file: 'hold/pair-rows.ts',
    from: 'if (Number(at) > until && this.keptBytes <= bytesMax) return;',
    to: 'if (Number(at) > until) return;',
    breaks:
      'the bytes of records that are left out fill a sixteenth of the spool at most; the oldest go first',
  },
  {
    what: 'a cutover delivers only as many waiting records as leave at a time',
    file: 'hold/pairs.ts',
    from: 'if (waiting.length === 0) break;',
    to: 'if (waiting.length < releasedMax.max) break;',
    breaks: 'a cutover with more waiting records than leave at a time delivers each of them',
  },
];
