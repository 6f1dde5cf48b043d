// A scripted Azure Monitor as the receiver of the sentinel sink. It rejects no row for its content, so a picky one is a
// service that accepts small calls only: events to be rejected are larger than its limit.

import { azure, startAzureMonitor } from '../../support/azure-monitor.ts';
import { moody } from './moody.ts';
import { type Receiver, type ReceiverKind, uidsIn } from './receiver.ts';

/** The receiver of the sentinel sink. */
export const azureKind: ReceiverKind = {
  type: 'sentinel',
  name: 'sentinel (small calls)',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const picky = mood === 'picky' || mood === 'mixed';
    const service = await startAzureMonitor({
      ...(picky && { callBytesMax: mood === 'picky' ? 20_000 : 10_000 }),
      ...(mood === 'shaky' && { callsBeforeRole: 2 }),
    });
    let failed = 0;
    const isTooMany = () => false;
    service.interfere(moody(mood, { random, fail: () => (failed += 1), isTooMany }));
    if (mood === 'away') await service.close();
    return {
      config: {
        endpoint: service.url,
        authority: service.url,
        dcr_immutable_id: azure.rule,
        stream_name: azure.stream,
        auth: {
          tenant_id: azure.tenant,
          client_id: azure.clientId,
          client_secret: azure.clientSecret,
        },
        timeout: mood === 'mute' ? '300ms' : '5s',
      },
      failures: () => failed,
      arrived: () => service.rows.map((row) => uidsIn(uidColumns(row)).at(0) ?? ''),
    };
  },
};

/** The columns whose names speak of a uid, as text; the sink says how it calls them. */
function uidColumns(row: Readonly<Record<string, unknown>>): string {
  const columns = Object.entries(row).filter(([name]) => /uid$/i.test(name));
  return columns.map(([, value]) => `uid=${value}`).join(' ');
}
