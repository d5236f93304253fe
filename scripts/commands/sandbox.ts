import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SandboxOptions } from '../../sandbox/options.ts'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { UsageError } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  port?: number
  host?: string
  seed?: number
  options?: string
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .option('--port <number>', 'where it serves (default: a free port)', wholeNumber)
    .option(
      '--host <address>',
      'another address than 127.0.0.1, in a network of its own: it asks nobody who they are',
    )
    .option('--seed <number>', 'decides its data and all that is left to chance', wholeNumber)
    .option('--options <file>', 'a JSON file with everything else: counts, faults, drift, what lists honour')
    .action(async (options: Options) => {
      await serve({ options: toSandboxOptions(options), terminal })
    })
}

function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Give a whole number.')
}

function toSandboxOptions({ port, host, seed, options: file }: Options): SandboxOptions {
  const fromFile = file === undefined ? {} : readOptions(resolve(process.env['INIT_CWD'] ?? '', file))
  return {
    ...fromFile,
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(seed === undefined ? {} : { seed }),
  }
}

function readOptions(file: string): SandboxOptions {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as SandboxOptions
  } catch (cause) {
    throw new UsageError(`--options ${file} cannot be read as JSON: ${String(cause)}.`, { cause })
  }
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
  terminal.note('The sandbox serves until Ctrl-C. Give the connector these settings, in its .env for one.')
  await interrupted
  await sandbox.close()
}
