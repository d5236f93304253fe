import { TestWorkflowEnvironment } from '@temporalio/testing'
import { cliVersion } from './find-binary.ts'

// A program for find-binary.ts: downloads the Temporal CLI into the given folder. The SDK downloads it only
// when it starts a server from it.
console.log('begins')
const [downloadDir = '.'] = process.argv.slice(2)
try {
  const executable = { type: 'cached-download', downloadDir, version: `v${cliVersion}` } as const
  const environment = await TestWorkflowEnvironment.createLocal({ server: { executable } })
  await environment.teardown()
} catch (error) {
  const words = error instanceof Error ? error.message : String(error)
  // Each level of the message repeats the address; the reason comes last.
  console.error(words.split(': ').slice(-3).join(': '))
  process.exitCode = 1
}
