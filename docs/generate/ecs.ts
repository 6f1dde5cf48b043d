// What the page of the `ecs` format takes from its table of fields: where each field comes from.

import { ecsFields } from '../../formats/ecs-fields.ts';
import { table } from './settings-table.ts';

/** Every field that is filled from one attribute, with its sources. */
export function ecsFieldTable(): string {
  const rows = ecsFields.map(({ field, from }) => [
    `\`${field}\``,
    from.map((path) => `\`${path}\``).join(', '),
  ]);
  return table(['field', 'from the OCSF attribute'], rows);
}
