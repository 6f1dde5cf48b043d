// The panels of the dashboards, as a table: a title, a query in Lucene, and the field whose top values are shown, or none
// for a count over time. Invariant: each field is mapped by the index template and can be aggregated; a test checks both.

/** One panel. */
export interface Panel {
  readonly title: string;
  readonly query: string;
  /** Null: a count over time. */
  readonly field: string | null;
}

/** One dashboard. */
export interface Dashboard {
  readonly id: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

const changes =
  'event.category:(configuration OR iam) OR (event.category:api AND NOT event.type:access)';
const agents = 'sluice.actor.kind:agent';
const threats = 'event.kind:alert OR event.type:denied OR event.severity:>=4';
const failed = 'event.category:authentication AND event.outcome:failure';
const health = 'event.code:(source.* OR sink.* OR drift.* OR integrity_violation OR schema_drift)';

const over = (title: string, query: string): Panel => ({ title, query, field: null });
const top = (title: string, query: string, field: string): Panel => ({ title, query, field });

/** All dashboards. */
export const dashboards: readonly Dashboard[] = [
  {
    id: 'sluice-changes',
    title: 'sluice: changes by actor',
    panels: [
      over('Changes over time', changes),
      top('Changes by actor', changes, 'user.name'),
      top('Changes by action', changes, 'event.action'),
      top('Changed kinds of objects', changes, 'sluice.target.type'),
      top('New values', changes, 'sluice.change'),
      top('Failed logins by person', failed, 'user.name'),
    ],
  },
  {
    id: 'sluice-agents',
    title: 'sluice: AI agents',
    panels: [
      over('Actions of agents over time', agents),
      top('Agents', agents, 'user.name'),
      top('Actions of agents', agents, 'event.action'),
      top('Runs', agents, 'sluice.run'),
    ],
  },
  {
    id: 'sluice-threats',
    title: 'sluice: threats',
    panels: [
      over('Alerts and denied actions over time', threats),
      top('By action', threats, 'event.action'),
      top('By source address', threats, 'source.ip'),
      top('By object', threats, 'sluice.target.name'),
    ],
  },
  {
    id: 'sluice-health',
    title: 'sluice: export health',
    panels: [
      over('Events over time', '*'),
      top('Events by source', '*', 'sluice.source'),
      top('Conditions of sources and sinks', health, 'event.code'),
      over('Conditions over time', health),
    ],
  },
];
