import type { Logger, NativeConnection } from '@temporalio/worker'
import { readFileSync } from 'node:fs'
import { decodeText } from './settings/env-file.ts'
import { visibleAscii } from './settings/kinds.ts'

const readEveryMs = 1_000

/** Returns a function that gives Temporal's API key from a file, re-read after one second. */
export function readApiKey(file: string): () => string {
  let key = ''
  let readAt = -Infinity
  return () => {
    if (performance.now() - readAt < readEveryMs) return key
    readAt = performance.now()
    // While the file is being replaced, it may be missing or empty: keep the last key.
    return (key = keyIn(file) ?? key)
  }
}

function keyIn(file: string): string | undefined {
  try {
    const key = decodeText(readFileSync(file)).trim()
    return visibleAscii.test(key) ? key : undefined
  } catch {
    return undefined
  }
}

/** Updates a connection's API key whenever its file changes, until disposed. */
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
