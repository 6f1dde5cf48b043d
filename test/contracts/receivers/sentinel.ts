// The scripted Azure Monitor as the receiver of the sentinel sink. Azure itself answers 204 whatever a row has; a proxy
// before it rejects calls for their content.

import { type AzureInterference, azure, startAzureMonitor } from '../../support/azure-monitor.ts';
import type { HttpAnswer } from '../../support/http-receiver.ts';
import { failures, type Mood, type Receiver, type ReceiverKind, refusedText } from './receiver.ts';

/** The receiver of the sentinel sink. */
export const sentinelKind: ReceiverKind = {
  type: 'sentinel',
  name: 'sentinel',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const service = await startAzureMonitor(mood === 'mixed' ? { callBytesMax: 30_000 } : {});
    let failed = 0;
    service.interfere(interference(mood, random, () => (failed += 1)));
    if (mood === 'away') await service.close();
    return {
      config: {
        ...sentinelConfig(service.url),
        timeout: mood === 'mute' ? '300ms' : '60s',
      },
      failures: () => failed,
      arrived: () => service.rows.map((row) => String(row.EventUid)),
    };
  },
};

/** The settings that lead to a scripted Azure Monitor. */
export function sentinelConfig(url: string) {
  return {
    ...{ endpoint: url, authority: url },
    dcr_immutable_id: azure.rule,
    stream_name: azure.stream,
    auth: {
      tenant_id: azure.tenant,
      client_id: azure.clientId,
      client_secret: azure.clientSecret,
    },
  };
}

function interference(mood: Mood, random: () => number, fail: () => void): AzureInterference {
  return (request, pass): HttpAnswer => {
    if (mood === 'mute') return { answer: 'hang' };
    if ((mood === 'shaky' || mood === 'mixed') && random() < 0.4) {
      fail();
      if (random() < 0.3) pass(); // taken, and yet the answer is lost
      return failures[Math.floor(random() * failures.length)] ?? pass();
    }
    const isPicky = mood === 'picky' || mood === 'mixed';
    if (!isPicky || !request.body.includes(refusedText)) return pass();
    const error = { code: 'InvalidPayload', message: 'not this one' };
    return { answer: 'reply', status: 400, body: JSON.stringify({ error }) };
  };
}
