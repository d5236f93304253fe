import { setTimeout as wait } from 'node:timers/promises'
import { NativeConnection, type Logger, type NativeConnectionOptions } from '@temporalio/worker'

/** What the SDK's native part says where the system has no certificates to hold a server's against. */
const withoutRoots = /NativeCertsNotFound/

/** Nothing on this machine tells which certificate authorities are to be trusted; nothing was begun. */
export class NoRootCertificatesError extends Error {
  override readonly name = 'NoRootCertificatesError'
  readonly exitCode = 2
  readonly hint =
    'Install them (`apt-get install ca-certificates`), or name a file with them in SSL_CERT_FILE. Node brings its own, Temporal takes those of the system.'
  constructor(options: ErrorOptions) {
    super('This system has no root certificates, so that no certificate of Temporal can be checked.', options)
  }
}

/** @throws {NoRootCertificatesError} and what the SDK throws where Temporal does not answer */
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
 * Tries until Temporal answers, for a worker that may be started before it. Logs each failure with the wait before the
 * next try, which doubles from 1 s to 30 s.
 *
 * @throws {NoRootCertificatesError}
 */
export async function connectWithRetries(
  options: NativeConnectionOptions,
  { logger }: { logger: Logger },
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
