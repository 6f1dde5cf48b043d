// In which shard each source has its state, as the control topic says.

import { Control } from '../../src/cluster/control.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { systemClock } from '../../src/tools/clock.ts';

/** The stored shard of each source. */
export async function storedHomes(brokers: readonly string[], prefix: string) {
  const settings = { brokers: brokers.map(parseHostPort).filter((one) => one !== null), prefix };
  const control = new Control(settings, systemClock());
  await control.readAll();
  const homes = Object.fromEntries(control.homes);
  await control.close();
  return homes;
}
