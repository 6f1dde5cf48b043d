// Two scripted Splunk indexers behind a balancer as the receiver of the splunk_hec sink, with indexer acknowledgement and
// without. Where the mood is bad, cookies end as well, and indexers are killed and come back.

import { splunkTokens, startSplunk } from '../../support/splunk-hec.ts';
import { moody } from './moody.ts';
import { type Receiver, type ReceiverKind, refusedText } from './receiver.ts';

const eventsMax = 4;

/** The receiver of the splunk_hec sink. */
export function splunkKind(ack: 'required' | 'off'): ReceiverKind {
  return {
    type: 'splunk_hec',
    name: `splunk_hec (ack: ${ack})`,
    unable: {},
    async start(mood, random): Promise<Receiver> {
      const picky = mood === 'picky' || mood === 'mixed';
      const splunk = await startSplunk({
        ...(mood === 'willing' && { pollsInVain: 1 }),
        ...(picky && { refuses: (raw) => raw.includes(refusedText) }),
      });
      let failed = 0;
      const isTooMany = ({ body }: { readonly body: Buffer }) =>
        body.toString().split('"sluice_uid"').length - 1 > eventsMax;
      const shake = moody(mood, { random, fail: () => (failed += 1), isTooMany });
      splunk.interfere((request, pass) => {
        const isBad = mood === 'shaky' || mood === 'mixed';
        if (isBad && random() < 0.05) splunk.expireCookies();
        // Without acknowledgement the memory of a killed indexer is lost, and no client could notice.
        if (isBad && ack === 'required' && random() < 0.05) {
          const indexer = splunk.indexers[random() < 0.5 ? 0 : 1];
          indexer?.kill();
          indexer?.restart();
        }
        return shake(request, pass);
      });
      if (mood === 'away') await splunk.close();
      const { token } = ack === 'required' ? splunkTokens.acked : splunkTokens.plain;
      return {
        config: {
          ...{ url: splunk.url, token, ack },
          // What was lost is waited for in vain; a second word that a willing one needs is not.
          ...(ack === 'required' && { ack_timeout: mood === 'willing' ? '60s' : '300ms' }),
          timeout: mood === 'mute' ? '300ms' : '5s',
        },
        failures: () => failed,
        arrived: () => splunk.indexed.map(({ fields }) => String(fields.sluice_uid)),
      };
    },
  };
}
