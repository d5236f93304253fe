import type { Command } from 'commander'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { describeOptions, type SandboxOptions, toSettings } from '../../sandbox/options.ts'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { UsageError } from '../terminal/failures.ts'
import { onInterrupt, type Terminal } from '../terminal/terminal.ts'
import { addExamples, addInputOptions, callersPath } from './options.ts'

const sandboxInput = z.object({
  port: z
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .meta({ flag: '--port <port>', help: 'port to listen on', otherwise: 'a free one' }),
  host: z.string().optional().meta({
    flag: '--host <address>',
    help: 'address to listen on; it has no access control, so only in a private network',
    otherwise: '127.0.0.1',
  }),
})

export function configure(command: Command, terminal: Terminal): void {
  addInputOptions(command, sandboxInput)
    .option('--options <file>', 'JSON file with everything else, as listed below')
    .action(async ({ options: file, ...typed }: { options?: string }) => {
      const fromFile = file === undefined ? {} : readOptions(callersPath(file))
      await serve({ options: { ...fromFile, ...typed }, terminal })
    })
  command.addHelpText('after', () => `\n${describeOptions()}`)
  addExamples(command, 'inspect', {
    'sandbox --port 8080': 'prints the settings to connect to it',
    'sandbox --options sandbox.json': 'with a seed, counts and faults of your own',
  })
}

function readOptions(file: string): SandboxOptions {
  let options: unknown
  try {
    options = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new UsageError(`--options ${file} cannot be read as JSON: ${String(cause)}.`, { cause })
  }
  try {
    toSettings(options as SandboxOptions)
  } catch (cause) {
    throw new UsageError(`--options ${file}: ${(cause as Error).message}.`, { cause })
  }
  return options as SandboxOptions
}

async function serve({ options, terminal }: { options: SandboxOptions; terminal: Terminal }): Promise<void> {
  const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<void>()
  using _ = onInterrupt({ first: interrupt, second: () => process.exit(1) })
  const sandbox = await createSandbox(options)
  const { url, port, token, workspace } = sandbox
  terminal.result({
    document: { url, port, token, workspace },
    text: `BILLING_BASE_URL=${url}\nBILLING_TOKEN=${token}\nBILLING_WORKSPACE=${workspace}`,
  })
  terminal.note('The sandbox runs until Ctrl-C. Use these settings for the connector, for example in .env.')
  await interrupted
  await sandbox.close()
}
