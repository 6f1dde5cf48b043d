// The entry point of src/run: the parts for commands that inspect a config and a state.

export type { Plan, Summary } from '../pipeline.ts';
export type { UpstreamClient } from '../upstream/index.ts';
export { agreeOnDeployment, deploymentFinding } from './deployment.ts';
export { timeToGiveUp } from './give-up.ts';
export { agreeOnHomes, homesFault } from './homes.ts';
export { lastLines, ownPath } from './log-tail.ts';
export { type MemberNote, memberIn } from './member-note.ts';
export { formatKeyOf, planFrom, readingOf, type Shared, type WholePlan } from './plan.ts';
export { planToLook } from './plan-to-look.ts';
export {
  type ReloadRefusal,
  type RunningConfig,
  runningIn,
  runningWith,
} from './running-config.ts';
export { listenForShutdown, type Shutdown } from './shutdown.ts';
export { turnPair } from './succession.ts';
export { type BootTools, openTools } from './tools.ts';
