// `node release-build-main.ts OUT`: builds the one file from the checkout that this script is in, with this Node and its
// symbols, into OUT/sluice. Prints the SHA-256 of the tree and of the file.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeExecutable } from '../../deploy/release/executable.ts';
import { releaseTree } from '../../deploy/release/tree.ts';

const [, , out = ''] = process.argv;
const work = join(out, 'work');
mkdirSync(work, { recursive: true });
const { files } = await releaseTree();
const sum = createHash('sha256');
for (const [path, bytes] of files) sum.update(path).update('\0').update(bytes);
const file = join(out, 'sluice');
writeExecutable(files, process.execPath, file, work);
const fileSum = createHash('sha256').update(readFileSync(file)).digest('hex');
process.stdout.write(`${sum.digest('hex')} ${fileSum}\n`);
