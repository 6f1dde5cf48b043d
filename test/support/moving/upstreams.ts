// Two upstreams over one ledger, for tests of a source that moves from an API that ends to its successor: the old one
// (camelCase, integer ids, `page` and `page_size`, an API key, plain errors) and the new one (snake_case, text ids, cursor or
// offset, client credentials, problem details). Written from the two documents and from the rules of succession alone, and
// shares no code with src. Nothing here moves by itself: a test adds records and says which side shows them, when a side dies,
// and how.
//
//   const pair = await startMovingUpstreams({ order: { old: 'newest_first' } });
//   pair.addMany(300);                        both sides show them
//   const lost = pair.only('old').add();      one side shows it
//   pair.show(lost, 'new');                   the other shows it later
//   pair.add({ differs: { action_name: 'x' } });
//   pair.die('old', 410); pair.revive('old');
//   pair.onRequest('new', (path, number) => …)  awaited before each answer: the moment to kill a process
//   pair.count(readFileSync(out, 'utf8'))     { lost, repeated, times } by marks
//
// What is where (`pair.upstreams` is a config's block, `old` with api: unified):
//   old  /audit  /companies/{company_id}/audit  /tickets  /companies/{company_id}/tickets  /tickets/{parent_id}/events
//        {"data": […], "page", "pageSize", "totalPages", "total"}
//   new  /api/logs/v1/audit and /api/logs/v1/companies/{company_id}/audit: cursor, or offset where `offset` is sent
//        /api/ticketing/v1/companies/{company_id}/tickets (offset), …/tickets/{parent_id}/events (cursor)
// A record is placed where it arrived on its side; with `sorted: 'time'` by its time, so that a late one is in the middle.

import { type Entry, type Forms, markOf, markPattern, type Side, type Ticket } from './ledger.ts';
import { type Death, MovingServer } from './server.ts';

export type { Entry, Side, Ticket } from './ledger.ts';
export type { Death } from './server.ts';

/** How the pair is; everything has a default. */
export interface MovingOptions {
  /** Digits; those of the ledger and of the new upstream. Default: `1`. */
  readonly companies?: readonly string[];
  /** Companies that only the new upstream has. */
  readonly newCompanies?: readonly string[];
  readonly order?: Partial<Record<Side, 'oldest_first' | 'newest_first'>>;
  /** Default: `arrival`. */
  readonly sorted?: 'arrival' | 'time';
  readonly ids?: Partial<Forms['ids']>;
  readonly aheadMs?: Partial<Forms['aheadMs']>;
  readonly oldTimes?: Forms['oldTimes'];
  readonly oldShowsCompany?: boolean;
  readonly newShowsCompany?: boolean;
  /** The time of the first record. Default: an hour ago; each further one is a second later. */
  readonly startMs?: number;
  /** The most records of a page of either side. Default: 100. */
  readonly pageMax?: number;
}

/** What a test chooses of a record. */
export type EntryChoice = Partial<Omit<Entry, 'mark'>>;

/** What a text of delivered events holds of the ledger. */
export interface Delivered {
  /** Marks of records that one side or both have shown in the end and that no line holds. */
  readonly lost: readonly string[];
  /** Marks that more than one line holds. */
  readonly repeated: readonly string[];
  /** How many lines hold each mark. */
  readonly times: ReadonlyMap<string, number>;
}

/** The running pair. */
export interface MovingUpstreams {
  /** The `upstreams` block of a config. JSON, which is YAML. */
  readonly upstreams: Readonly<Record<Side, object>>;
  readonly entries: readonly Entry[];
  /** Adds a record that both sides show from now on. */
  add(choice?: EntryChoice): Entry;
  addMany(count: number, choice?: EntryChoice): readonly Entry[];
  /** The same for one side. */
  only(side: Side): Pick<MovingUpstreams, 'add' | 'addMany'>;
  /** Shows on a side a record that it did not show. */
  show(entry: Entry, side: Side): void;
  /** Removes a record from a side, as retention does. */
  hide(entry: Entry, side: Side): void;
  /** Creates a ticket or changes it, on both sides or one. */
  setTicket(id: number, change?: Partial<Omit<Ticket, 'id'>>, side?: Side): void;
  removeTicket(id: number, side?: Side): void;
  /** From now on each request to the side fails that way. */
  die(side: Side, how: Death): Promise<void>;
  /** Ends that. */
  revive(side: Side): Promise<void>;
  /** Response headers of a side's lists from now on, such as `sunset` and `deprecation`. */
  announce(side: Side, headers: Readonly<Record<string, string>>): void;
  /** Calls before each answer of a side and waits for it; `number` counts its requests from 1. */
  onRequest(side: Side, call: (path: string, number: number) => unknown): void;
  /** List requests so far, those that failed included. */
  requests(side: Side): number;
  /** How often a side has shown each record, by its mark. */
  served(side: Side): ReadonlyMap<string, number>;
  /** Counts the ledger's audit records in delivered lines; events of sluice itself do not count. */
  count(lines: string, expected?: readonly Entry[]): Delivered;
}

/** Starts both; they end with the test that started them. */
export async function startMovingUpstreams(options: MovingOptions = {}): Promise<MovingUpstreams> {
  const {
    companies = ['1'],
    newCompanies = [],
    order = {},
    sorted = 'arrival',
    ids = {},
  } = options;
  const { aheadMs = {}, oldTimes = 'rfc3339', pageMax = 100 } = options;
  const { oldShowsCompany = true, newShowsCompany = true } = options;
  const { startMs = Date.now() - 3_600_000 } = options;
  const forms: Forms = {
    ids: { old: 'same', new: 'same', ...ids },
    aheadMs: { old: 0, new: 0, ...aheadMs },
    ...{ oldTimes, oldShowsCompany, newShowsCompany },
  };
  const all = [...companies, ...newCompanies];
  const start = (side: Side) =>
    MovingServer.start({
      ...{ side, forms, sorted, pageMax, companies: side === 'old' ? companies : all },
      order: order[side] ?? 'oldest_first',
    });
  const servers = { old: await start('old'), new: await start('new') };
  const sides: readonly Side[] = ['old', 'new'];
  const entries: Entry[] = [];
  const adding = (where: readonly Side[]) => {
    const add = (choice: EntryChoice = {}): Entry => {
      const number = entries.length;
      const entry: Entry = {
        mark: markOf(number),
        id: 1_000 + number,
        company: companies[number % companies.length] ?? '1',
        timeMs: startMs + number * 1_000,
        ...{ ticket: null, differs: {} },
        ...choice,
      };
      entries.push(entry);
      for (const side of where) servers[side].show(entry);
      return entry;
    };
    const addMany = (count: number, choice: EntryChoice = {}) =>
      Array.from({ length: count }, () => add(choice));
    return { add, addMany };
  };
  return {
    entries,
    upstreams: {
      old: { api: 'unified', ...servers.old.access, companies },
      new: { api: 'services', ...servers.new.access, companies: all },
    },
    ...adding(sides),
    only: (side) => adding([side]),
    show: (entry, side) => servers[side].show(entry),
    hide: (entry, side) => servers[side].hide(entry),
    setTicket(id, change = {}, side) {
      for (const one of side === undefined ? sides : [side]) servers[one].setTicket(id, change);
    },
    removeTicket(id, side) {
      for (const one of side === undefined ? sides : [side]) servers[one].removeTicket(id);
    },
    die: (side, how) => servers[side].die(how),
    revive: (side) => servers[side].revive(),
    announce: (side, headers) => servers[side].announce(headers),
    onRequest: (side, call) => servers[side].onRequest(call),
    requests: (side) => servers[side].requests,
    served: (side) => servers[side].served,
    count: (lines, expected = entries) => counted(lines, expected),
  };
}

function counted(lines: string, expected: readonly Entry[]): Delivered {
  const times = new Map<string, number>();
  for (const line of lines.split('\n')) {
    const mark = /"log_name":"sluice"/.test(line) ? undefined : markPattern.exec(line)?.[0];
    if (mark !== undefined) times.set(mark, (times.get(mark) ?? 0) + 1);
  }
  const marks = expected.map(({ mark }) => mark);
  return {
    times,
    lost: marks.filter((mark) => !times.has(mark)),
    repeated: [...times].flatMap(([mark, count]) => (count > 1 ? [mark] : [])),
  };
}
