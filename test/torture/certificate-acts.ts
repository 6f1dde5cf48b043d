// Acts on the certificates of the two receivers with TLS, rsyslog and the HTTP receiver: one expires and is renewed
// under the same authority, the authority itself is replaced, and a stranger shows one of its own. While the
// certificate is not trusted, not one event may be sent there; once it is valid again everything resumes without a
// restart.

import { setTimeout as delay, setImmediate as turnOver } from 'node:timers/promises';
import type { Certificates } from '../support/certificates.ts';
import type { Perform } from './acts.ts';
import type { Stage } from './stage.ts';
import type { Trust } from './trust.ts';

/** A receiver as these acts see it. */
interface Shown {
  readonly name: string;
  readonly trust: Trust;
  /** Shows another certificate from now on; what has come until then is counted. */
  show(tls: Certificates): Promise<void>;
  /** How much has come so far. */
  count(): number;
}

function siemOf({ receivers: { rsyslog, syslog, trust } }: Stage): Shown {
  return {
    name: 'siem',
    trust: trust.siem,
    show: (tls) => rsyslog.restart(tls),
    count: () => {
      syslog.read();
      return syslog.tls.count;
    },
  };
}

function postOf({ receivers: { post, posts, trust } }: Stage): Shown {
  return {
    name: 'post',
    trust: trust.post,
    show: async (tls) => post.show(tls),
    count: () => posts.post.requests,
  };
}

/** Shows a certificate that must be refused, for a while, and notes whatever was sent all the same. */
async function refused(stage: Stage, at: Shown, what: Refusable): Promise<void> {
  await at.show(what.tls);
  // What has come whole by now is still taken.
  await turnOver();
  const before = at.count();
  await delay(what.forMs);
  const taken = at.count() - before;
  if (taken > 0) stage.defects.push(`${at.name} got ${taken} while it showed ${what.name}`);
}

interface Refusable {
  readonly name: string;
  readonly tls: Certificates;
  readonly forMs: number;
}

function certificateActs(receiver: (stage: Stage) => Shown): Readonly<Record<string, Perform>> {
  return {
    'certificate expires and is renewed': async (stage, { forMs }) => {
      const at = receiver(stage);
      const { expired, current } = at.trust;
      await refused(stage, at, { name: 'an expired certificate', tls: expired, forMs });
      await at.show(current);
    },
    'authority is replaced': async (stage, { forMs }) => {
      const at = receiver(stage);
      const { stranger } = at.trust;
      await refused(stage, at, {
        name: 'the certificate of another authority',
        tls: stranger,
        forMs,
      });
      at.trust.replace();
    },
  };
}

/** The acts on rsyslog's certificate. */
export const siemCertificateActs: Readonly<Record<string, Perform>> = {
  ...certificateActs(siemOf),
  'an impostor stands in for it': async (stage, act) => {
    const { siem, impostor, trust } = stage.receivers;
    const { connections } = impostor;
    impostor.show(trust.siem.stranger);
    siem.leadTo(impostor.port);
    await delay(act.forMs);
    siem.leadTo(null);
    if (impostor.connections === connections) stage.missed.add(act);
    if (impostor.frames.length + impostor.torn + impostor.faults.length > 0) {
      stage.defects.push(`siem: an impostor got ${impostor.frames.length} events`);
    }
  },
};

/** The acts on the HTTP receiver's certificate. */
export const postCertificateActs: Readonly<Record<string, Perform>> = {
  ...certificateActs(postOf),
  'shows a stranger’s certificate': async (stage, { forMs }) => {
    const at = postOf(stage);
    const { stranger, current } = at.trust;
    await refused(stage, at, { name: 'a stranger’s certificate', tls: stranger, forMs });
    await at.show(current);
  },
};
