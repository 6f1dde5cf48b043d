// The dashboard of the app, as a table of panels: a title, a search, and its chart. Invariant: each search begins with the
// macro of the index and removes repeats by sluice_uid.

interface Panel {
  readonly title: string;
  readonly search: string;
  readonly chart: 'table' | 'chart';
}

const changes = 'eventtype=sluice_change';
const agents = 'eventtype=sluice_change actor.app_name=*';
const conditions = 'metadata.log_name=sluice';
const once = '| dedup sluice_uid';

/** Two panels are in one row. */
const panels: readonly Panel[] = [
  over('Changes over time', changes, 'action'),
  top('Changes by actor', changes, 'user'),
  top('Changed kinds of objects', changes, 'object_category'),
  top('Actions of AI agents', agents, 'metadata.event_code'),
  top('Failed logins', 'eventtype=sluice_authentication action=failure', 'user'),
  over('Network traffic', 'eventtype=sluice_network_traffic', 'action'),
  top('Intrusions', 'eventtype=sluice_intrusion', 'signature'),
  top('Conditions of the export', conditions, 'metadata.event_code'),
];

function over(title: string, search: string, by: string): Panel {
  return { title, search: `${search} ${once} | timechart count by ${by}`, chart: 'chart' };
}

function top(title: string, search: string, field: string): Panel {
  return { title, search: `${search} ${once} | top limit=20 ${field}`, chart: 'table' };
}

/** The dashboard in Simple XML. */
export function dashboardXml(): string {
  const rows = [];
  for (let at = 0; at < panels.length; at += 2) {
    rows.push(
      `  <row>\n${panels
        .slice(at, at + 2)
        .map(panelXml)
        .join('')}  </row>\n`,
    );
  }
  return `<form version="1.1" theme="light">
  <label>sluice: changes, agents, threats</label>
  <fieldset submitButton="false">
    <input type="time" token="time">
      <label>Time</label>
      <default><earliest>-24h@h</earliest><latest>now</latest></default>
    </input>
  </fieldset>
${rows.join('')}</form>
`;
}

function panelXml({ title, search, chart }: Panel): string {
  const option = chart === 'chart' ? '        <option name="charting.chart">column</option>\n' : '';
  return `    <panel>
      <title>${title}</title>
      <${chart}>
        <search>
          <query>\`sluice_index\` ${search}</query>
          <earliest>$time.earliest$</earliest>
          <latest>$time.latest$</latest>
        </search>
${option}      </${chart}>
    </panel>
`;
}
