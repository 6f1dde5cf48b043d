// The entry point of src/parquet: files of the lake.

export { eraseEvents } from './erase.ts';
export { lakeEvents, lakeName } from './lake.ts';
export { type ParquetObject, PartitionedEvents, partitionPath, UidBytes } from './partitions.ts';
export { cutFact, cutOf, readUids } from './read.ts';
