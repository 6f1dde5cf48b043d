// Entry point: connections and transactions of @platformatic/kafka for the state in Kafka. Importing this file loads that
// client.

export { kafkaFailureOf, rejecting } from './failure.ts';
export { Client, type Transaction } from './platformatic-client.ts';
export { Connections, type ConnectionsOptions } from './platformatic-connections.ts';
