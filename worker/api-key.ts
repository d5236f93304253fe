import type { Logger, NativeConnection } from '@temporalio/worker'
import { readFileSync } from 'node:fs'
import { visibleAscii } from './settings/kinds.ts'

const readEveryMs = 1_000

/** Gives the API key for Temporal that a file contains, read again after a second. */
export function readApiKey(file: string): () => string {
  let key = ''
  let readAt = -Infinity
  return () => {
    if (performance.now() - readAt < readEveryMs) return key
    readAt = performance.now()
    // While the file is replaced it may be missing or empty: the last key applies.
    return (key = keyIn(file) ?? key)
  }
}

function keyIn(file: string): string | undefined {
  try {
    const key = readFileSync(file, 'utf8').trim()
    return visibleAscii.test(key) ? key : undefined
  } catch {
    return undefined
  }
}

/** Gives a worker's connection the API key of a file whenever that changes, until it is disposed of. */
export function followApiKey(options: {
  file: string
  connection: Pick<NativeConnection, 'setApiKey'>
  logger: Logger
}): Disposable {
  const { file, connection, logger } = options
  let used = keyIn(file)
  const timer = setInterval(() => {
    const key = keyIn(file)
    if (key === undefined || key === used) return
    used = key
    connection.setApiKey(key).then(
      () => logger.info('uses the new API key for Temporal'),
      (error: unknown) => logger.error('could not use the new API key for Temporal', { error }),
    )
  }, readEveryMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
