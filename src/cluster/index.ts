// The entry point of src/cluster: settings and rules of ownership. Loads no Kafka client.

export { type ConfigPrint, differencesIn, printAfter } from './config-print.ts';
export { compareDeployments, type Deployment, deploymentOf, differenceText } from './deployment.ts';
export { GroupContact, sendTurnOf } from './group-contact.ts';
export {
  type MemberSettings,
  oldOwnersOf,
  processName,
  type StateLogSettings,
  shardNames,
} from './log/settings.ts';
export { rightsOf } from './rights.ts';
