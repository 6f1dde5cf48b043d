// The workbook for Microsoft Sentinel as a table of panels: a title, a query and its chart.

/** One panel. */
export interface WorkbookPanel {
  readonly title: string;
  readonly query: string;
  readonly chart: 'table' | 'timechart';
}

const changes = `SluiceEvents
| where EventClass in ("API Activity", "Entity Management", "Account Change") and EventType != "Read"`;
const agents = `${changes} and isnotempty(Event.actor.app_name)`;

const over = (title: string, query: string, by: string): WorkbookPanel => ({
  title,
  query: `${query}\n| summarize Events = count() by bin(EventStartTime, 1h), ${by}`,
  chart: 'timechart',
});
const top = (title: string, query: string, by: string): WorkbookPanel => ({
  title,
  query: `${query}\n| summarize Events = count() by ${by}\n| top 20 by Events`,
  chart: 'table',
});

/** All panels. */
export const workbookPanels: readonly WorkbookPanel[] = [
  over('Changes over time', changes, 'EventType'),
  top('Changes by actor', changes, 'ActorUsername'),
  top('Changed kinds of objects', changes, 'TargetType'),
  top('Actions of AI agents', agents, 'EventCode'),
  top(
    'Failed logins',
    'SluiceEvents\n| where EventClass == "Authentication" and EventResult == "Failure"',
    'ActorUsername',
  ),
  over('Network traffic', 'vimNetworkSessionSluice()', 'DvcAction'),
  top('Alerts', 'vimAlertEventSluice()', 'AlertName'),
  top(
    'Conditions of the export',
    'SluiceEvents\n| where EventClass == "Application Lifecycle"',
    'EventCode',
  ),
];

/** The workbook as the resource stores it: JSON in a text. */
export function workbookText(): string {
  const items = workbookPanels.map(({ title, query, chart }, index) => ({
    type: 3,
    name: `query - ${index + 1}`,
    customWidth: '50',
    content: {
      version: 'KqlItem/1.0',
      title,
      query,
      size: 0,
      timeContext: { durationMs: 86_400_000 },
      queryType: 0,
      resourceType: 'microsoft.operationalinsights/workspaces',
      visualization: chart,
    },
  }));
  return JSON.stringify({
    version: 'Notebook/1.0',
    items,
    fallbackResourceIds: [],
    $schema:
      'https://github.com/Microsoft/Application-Insights-Workbooks/blob/master/schema/workbook.json',
  });
}
