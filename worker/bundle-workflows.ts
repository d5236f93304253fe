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
  payloadConverterPath: inWorkflows('run/converters'),
  failureConverterPath: inWorkflows('run/converters'),
  workflowInterceptorModules: [inWorkflows('run/refuse-unreadable'), inWorkflows('run/heartbeats')],
  logger: quiet,
})
// Flushed, because after a power cut an incomplete file would be taken for the bundle.
await writeFile(path, compact(code), { flush: true })

/**
 * Each worker holds several copies of the bundle. V8 stores a text that has one character outside Latin-1, as some
 * comments of the SDK do, in two bytes per character; an escape means the same in comments and literals. A stack trace is
 * mapped without the sources themselves. Together 1.2 MB instead of 4.3 for each copy.
 */
function compact(bundle: string): string {
  const [, code = '', map = ''] =
    /^(.*\n\/\/# sourceMappingURL=[^,]*;base64,)([^\n]*)\s*$/s.exec(bundle) ?? []
  if (map === '') throw new Error('the bundle of the workflows ends without its source map')
  const { sourcesContent: _sources, ...short } = JSON.parse(
    Buffer.from(map, 'base64').toString(),
  ) as object & {
    sourcesContent?: unknown
  }
  const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${code.replaceAll(/[^\0-\xff]/g, escape)}${Buffer.from(JSON.stringify(short)).toString('base64')}\n`
}
