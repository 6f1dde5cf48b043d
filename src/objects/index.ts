// The entry point of src/objects: object stores (S3, a directory).

export { openDirectory } from './directory.ts';
export { openStore } from './open.ts';
export { type BucketSettings, bucketKeys, bucketName } from './s3-settings.ts';
export {
  lockText,
  type ObjectContent,
  type ObjectFacts,
  type ObjectLock,
  type ObjectRange,
  type ObjectStore,
} from './store.ts';
