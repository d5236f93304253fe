// Run as a process of its own by workflow-bundle.ts: node bundle-workflows.ts <workflows folder> <file to write>
import { bundleWorkflowCode } from '@temporalio/worker'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const [folder, path] = process.argv.slice(2)
if (folder === undefined || path === undefined) throw new TypeError('usage: bundle-workflows <folder> <file>')
const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error }
const { code } = await bundleWorkflowCode({ workflowsPath: join(folder, 'index.ts'), logger: quiet })
// Two workers may make it at once: each writes its own, and the rename is whole.
await writeFile(`${path}.${process.pid}`, code)
await rename(`${path}.${process.pid}`, path)
