// Run as a process of its own by workflow-bundle.ts and for the package: node bundle-workflows.ts <file to write>
import { bundleWorkflowCode } from '@temporalio/worker'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const [path] = process.argv.slice(2)
if (path === undefined) throw new TypeError('usage: bundle-workflows <file>')
const workflowsPath = fileURLToPath(new URL('../workflows/index.ts', import.meta.url))
const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error }
const inWorkflows = (name: string) => fileURLToPath(new URL(`../workflows/${name}.ts`, import.meta.url))
const { code } = await bundleWorkflowCode({
  workflowsPath,
  payloadConverterPath: inWorkflows('run/payload-converter'),
  failureConverterPath: inWorkflows('run/failure-converter'),
  workflowInterceptorModules: [
    inWorkflows('run/trace'),
    inWorkflows('run/refuse-unreadable'),
    inWorkflows('run/heartbeats'),
  ],
  logger: quiet,
})
await writeFile(path, code)
