// The speed of this machine, against which figures of different days are compared.

import { pageBody, pageEvents } from './work.ts';

/** CPU microseconds that `JSON.parse` takes for an event. */
export function parseUs(): number {
  const body = pageBody(0, false).toString();
  const rounds = 100;
  for (let i = 0; i < rounds; i += 1) JSON.parse(body);
  const begun = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) JSON.parse(body);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / rounds / pageEvents;
}
