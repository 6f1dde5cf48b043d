// Scripted services of Google and Datadog as the receivers of their sinks.

import { datadogKey, startDatadogIntake } from '../../support/datadog-intake.ts';
import { startSecOps } from '../../support/google-secops.ts';
import { moody } from './moody.ts';
import { type Mood, type Receiver, type ReceiverKind, refusedText, uidsIn } from './receiver.ts';

const eventsMax = 4;
const isPicky = (mood: Mood) => mood === 'picky' || mood === 'mixed';
const refuses = (body: string) => body.includes(refusedText);

/** The receiver of the google_secops sink. */
export const secOpsKind: ReceiverKind = {
  type: 'google_secops',
  name: 'google_secops',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const service = await startSecOps(isPicky(mood) ? { refuses } : {});
    let failed = 0;
    const isTooMany = ({ body }: { readonly body: Buffer }) =>
      body.toString().split('"udm"').length - 1 > eventsMax;
    service.interfere(moody(mood, { random, fail: () => (failed += 1), isTooMany }));
    if (mood === 'away') await service.close();
    const [, project, , location, , instance] = service.instance.split('/');
    return {
      config: {
        ...{ url: service.url, project, location, instance },
        credentials: JSON.stringify(service.serviceAccount),
        timeout: mood === 'mute' ? '300ms' : '5s',
      },
      failures: () => failed,
      arrived: () => service.events.map(({ metadata }) => String(metadata.productLogId)),
    };
  },
};

/** The receiver of the datadog sink. */
export const datadogKind: ReceiverKind = {
  type: 'datadog',
  name: 'datadog',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const intake = await startDatadogIntake(isPicky(mood) ? { refuses } : {});
    let failed = 0;
    const isTooMany = ({ body }: { readonly body: Buffer }) =>
      new Set(uidsIn(body.toString())).size > eventsMax;
    intake.interfere(moody(mood, { random, fail: () => (failed += 1), isTooMany }));
    if (mood === 'away') await intake.close();
    return {
      config: { url: intake.url, api_key: datadogKey, timeout: mood === 'mute' ? '300ms' : '5s' },
      failures: () => failed,
      arrived: () =>
        intake.logs.map(({ attributes }) => uidsIn(JSON.stringify(attributes)).at(0) ?? ''),
    };
  },
};
