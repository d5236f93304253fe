import { TestWorkflowEnvironment } from '@temporalio/testing'
import { cliVersion } from './find-binary.ts'

// A program of its own, for download-binary.ts: downloads the command line into the folder it is given. The SDK
// knows no other way than to start a server from it.
const [downloadDir = '.'] = process.argv.slice(2)
try {
  const executable = { type: 'cached-download', downloadDir, version: `v${cliVersion}` } as const
  const environment = await TestWorkflowEnvironment.createLocal({ server: { executable } })
  await environment.teardown()
} catch (error) {
  const words = error instanceof Error ? error.message : String(error)
  // The reason stands last, after the address, which it repeats at each level.
  console.error(words.split(': ').slice(-3).join(': '))
  process.exitCode = 1
}
