// The list of sinks: a sink exists only if it is listed here. The reference page, the JSON Schema
// and the contract suite in test/contracts/ are generated from this list. To add one: write it
// under sinks/, add its line here, and give the contract suite a receiver for it.

import type { SinkDefinition } from '../src/contracts/config.ts';
import { archiveSink } from './sinks/archive.ts';
import { datadogSink } from './sinks/datadog.ts';
import { elasticsearchSink } from './sinks/elasticsearch.ts';
import { fileSink } from './sinks/file.ts';
import { googleSecOpsSink } from './sinks/google-secops.ts';
import { httpSink } from './sinks/http.ts';
import { kafkaSink } from './sinks/kafka.ts';
import { otlpSink } from './sinks/otlp.ts';
import { s3Sink } from './sinks/s3.ts';
import { sentinelSink } from './sinks/sentinel.ts';
import { splunkHecSink } from './sinks/splunk-hec.ts';
import { stdoutSink } from './sinks/stdout.ts';
import { syslogSink } from './sinks/syslog.ts';

export { type SaslSettings, sasl, saslIdentity } from './sinks/kafka/identity.ts';

/** Every sink that a config can name, in the order of the reference page. */
export const sinks: readonly SinkDefinition[] = [
  syslogSink,
  kafkaSink,
  otlpSink,
  elasticsearchSink,
  splunkHecSink,
  sentinelSink,
  googleSecOpsSink,
  datadogSink,
  httpSink,
  archiveSink,
  fileSink,
  s3Sink,
  stdoutSink,
];
