// The parts of undici that sluice always uses, by their files: its index loads four times as many, for proxies, fetch, mocks,
// caches and web sockets, and was a sixth of what a short run costs. What must stay true: undici's version is pinned, since
// which files it has is no promise of it.
export { default as buildConnector } from 'undici/lib/core/connect.js';
export { default as Agent } from 'undici/lib/dispatcher/agent.js';
