import { NativeConnection, type Logger, type NativeConnectionOptions } from '@temporalio/worker'
import { setTimeout as wait } from 'node:timers/promises'
import { isLoopback } from '../core/billing/connections.ts'
import type { Heartbeats } from '../core/notifications/opened.ts'

/** The SDK's native error if the system has no root certificates. */
const withoutRoots = /NativeCertsNotFound/

/** The system has no root certificates; nothing was started. */
export class NoRootCertificatesError extends Error {
  override readonly name = 'NoRootCertificatesError'
  readonly exitCode = 2
  readonly hint =
    'Install them (`apt-get install ca-certificates`), or set SSL_CERT_FILE to a file with them. Node has its own; Temporal uses those of the system.'
  constructor(options: ErrorOptions) {
    super(
      'This system has no root certificates, so the certificate of the Temporal server cannot be verified.',
      options,
    )
  }
}

/** @throws {NoRootCertificatesError} or the SDK's error if Temporal does not answer */
export async function connectTemporal(options: NativeConnectionOptions): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(options)
  } catch (error) {
    throw withoutRoots.test(String(error)) ? new NoRootCertificatesError({ cause: error }) : error
  }
}

const firstWaitMs = 1_000
const longestWaitMs = 30_000

/**
 * Retries until Temporal answers, for a worker that may start first. Logs each failure with the delay before
 * the next attempt, which doubles from 1 s to 30 s.
 *
 * @throws {NoRootCertificatesError}
 */
export async function connectWithRetries(
  options: NativeConnectionOptions,
  logger: Logger,
): Promise<NativeConnection> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    try {
      return await connectTemporal(options)
    } catch (error) {
      if (error instanceof NoRootCertificatesError) throw error
      const address = options.address ?? 'localhost:7233'
      logger.warn(`Temporal does not answer at ${address}`, { error, retryInSeconds: waitMs / 1000 })
      await wait(waitMs)
    }
  }
}

/**
 * The heartbeat intervals for the Temporal server at `address`: short if it is on this machine or in a
 * container beside it.
 */
export function heartbeatsAt(address = 'localhost:7233'): Heartbeats {
  const url = `http://${address}`
  if (!URL.canParse(url)) return 'remote'
  return isLoopback(url) || !/[.:]/.test(new URL(url).hostname) ? 'local' : 'remote'
}
