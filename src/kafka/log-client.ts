// Entry point: connections and transactions of @platformatic/kafka for the state in Kafka. Importing this file loads that
// client.

export { Client, type Transaction } from './platformatic-client.ts';
export { Connections, type ConnectionsOptions } from './platformatic-connections.ts';
export { kafkaFailureOf, rejecting } from './platformatic-errors.ts';
