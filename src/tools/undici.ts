// The always used parts of undici, imported by file: its index loads four times as many, for
// proxies, fetch, mocks, caches and web sockets, and was a sixth of a short run's cost. Invariant:
// undici's version is pinned, because its file names are not part of its API.
export { default as buildConnector } from 'undici/lib/core/connect.js';
export { default as Agent } from 'undici/lib/dispatcher/agent.js';
