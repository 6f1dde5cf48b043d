// The events of the log as tables, from their declarations.

import type { EventDeclaration } from '../../src/contracts/log-events/declaration.ts';
import { logEvents } from '../../src/contracts/log-events.ts';
import { table } from './settings-table.ts';

/** A section for each area. */
export function eventTables(): string {
  return Object.entries(logEvents)
    .map(([area, events]) => {
      const rows = Object.entries<EventDeclaration>(events).map(([event, declared]) => [
        `\`${event}\``,
        declared.level,
        declared.fields.map(fieldText).join(', '),
        declared.meaning,
        nextStep(declared),
      ]);
      return `## ${area}\n\n${table(['event', 'level', 'fields', 'meaning', 'next step'], rows)}`;
    })
    .join('\n\n');
}

function fieldText(field: string): string {
  return field === '…' ? 'details of the error' : `\`${field}\``;
}

function nextStep({ next, fields, level }: EventDeclaration): string {
  if (next !== undefined) return next;
  if (fields.includes('next')) return 'Follow `next` in the line.';
  return level === 'warn' || level === 'error' ? 'None.' : '';
}
