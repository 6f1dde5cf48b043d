// `sluice cluster acls`: prints the rights that the account of state.kafka needs, as lines for the administrator of the
// brokers. It connects to no broker.

import { type Config, loadConfig } from '../../config/index.ts';
import { hostPortText } from '../../contracts/config.ts';
import { UsageError } from '../../contracts/index.ts';
import { kafkaOf, rightsOf } from '../../operator/index.ts';
import { configOption, defineCommand } from '../shared/command.ts';

/** Prints them. */
export const acls = defineCommand({
  name: 'acls',
  about: 'print the rights that the state in Kafka needs, as lines for kafka-acls.sh',
  options: {
    config: configOption,
    principal: {
      value: 'name',
      about:
        'principal that gets the rights, such as User:CN=sluice; default: the user of state.kafka.sasl',
    },
  },
  async run({ config: file, principal }, { env, out }) {
    const kafka = kafkaOf(await loadConfig(file, { env }));
    const who = principal ?? principalOf(kafka);
    const brokers = kafka.brokers.map(hostPortText).join(',');
    for (const { resource, pattern, name, operations } of rightsOf(kafka)) {
      const words = [
        ...['kafka-acls.sh', '--bootstrap-server', brokers, '--add'],
        ...['--allow-principal', quoted(who)],
        ...operations.flatMap((operation) => ['--operation', operation]),
        ...(pattern === 'literal' ? [] : ['--resource-pattern-type', pattern]),
        ...[`--${resource}`, name],
      ];
      out(words.join(' '));
    }
    return 0;
  },
});

function principalOf({ sasl }: NonNullable<Config['state']['kafka']>): string {
  if (sasl !== undefined && sasl.mechanism !== 'oauthbearer') return `User:${sasl.username}`;
  const what =
    sasl === undefined
      ? 'state.kafka.sasl has no username'
      : 'state.kafka.sasl has no username: the principal is in its token';
  throw new UsageError(`${what}: add the account, such as --principal User:CN=sluice`);
}

/** For a shell. */
function quoted(text: string): string {
  return /^[\w:.@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
