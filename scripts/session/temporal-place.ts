import {
  Client,
  Connection,
  type GrpcRetryOptions,
  isRetryableError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { isLoopback } from '../../core/billing/connections.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'
import { readApiKey } from '../../worker/settings/rotating.ts'
import { toDataConverter } from '../../worker/codec/payload-codec.ts'
import type { PayloadKey } from '../../worker/settings/kinds.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { localChannel } from '../dev-server/readiness.ts'
import { findServer } from '../dev-server/server-record.ts'
import { RefusedError } from '../terminal/failures.ts'
import { toTemporalRefusal } from './temporal-refusal.ts'
import { connector } from '../../core/runs/view/shell.ts'

/** The Temporal server that a command uses. */
export interface TemporalPlace {
  connectionOptions: { address?: string }
  namespace: string
  uiUrl: string | undefined
  payloadKeys: readonly PayloadKey[]
  /** Read again when it changes. */
  apiKeyFile?: string | undefined
  /** Whether it is a dev server on this machine, which does not come back once it has ended. */
  isDevServer?: boolean
}

/**
 * The server of the TEMPORAL_* settings; without those, the running dev server of this data folder.
 *
 * @throws {RefusedError} the settings cannot be read
 */
export function temporalPlace(settings: Settings): TemporalPlace {
  const { connectionOptions: given, namespace } = readTemporalSettings(settings)
  const connectionOptions = isOnThisMachine(given) ? { ...given, ...localChannel } : given
  const { environment, dataDir, payloadKeys, temporalApiKeyFile: apiKeyFile } = settings
  const isNamed =
    environment['TEMPORAL_ADDRESS'] !== undefined || environment['TEMPORAL_PROFILE'] !== undefined
  const local = isNamed ? undefined : findServer(dataDir)
  if (local === undefined)
    return { connectionOptions, namespace: namespace ?? 'default', uiUrl: undefined, payloadKeys, apiKeyFile }
  return {
    connectionOptions: { address: local.address, ...localChannel },
    namespace: 'default',
    uiUrl: local.uiUrl,
    payloadKeys,
    isDevServer: true,
  }
}

/** What the SDK takes: a name or an IP address, and a port, which is 7233 by default. */
const hostAndPort = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]]+)(:(?<port>\d{1,5}))?$/i

/** @throws {RefusedError} a file of theirs cannot be read, as with the HOME of another user, or the address is none */
function readTemporalSettings({ environment }: Settings) {
  const settings = loadTemporalSettings(environment)
  const { address } = settings.connectionOptions
  const match = address === undefined ? undefined : hostAndPort.exec(address)
  if (match === null || Number(match?.groups?.['port'] ?? 1) > 65_535)
    throw new RefusedError(
      `Temporal's address (TEMPORAL_ADDRESS or a profile) is "${address}", not a host with a port.`,
      {
        hint: 'Write host:port without https:// and without a path, as in localhost:7233; TEMPORAL_TLS=true asks for TLS.',
      },
    )
  return settings
}

function loadTemporalSettings(environment: Settings['environment']) {
  try {
    return loadClientConnectConfig({ overrideEnvVars: { ...environment } })
  } catch (cause) {
    if (!isSystemError(cause)) throw cause
    throw new RefusedError(`Temporal's settings cannot be read (${cause.message}).`, {
      cause,
      hint: 'Let this user read the file, or set HOME to the home folder of this user.',
    })
  }
}

function isOnThisMachine({ address = 'localhost:7233' }: { address?: string }): boolean {
  const url = `http://${address}`
  return URL.canParse(url) && isLoopback(url)
}

/**
 * An aborted call ends only between two tries, and the client's own are up to five seconds apart: too long for a server
 * that has ended.
 */
const quickRetries: GrpcRetryOptions = {
  delayFunction: () => 250,
  retryableDecider: (attempt, status) => attempt < 8 && isRetryableError(status),
}

/** No Temporal server answers. */
export class NoServerError extends RefusedError {}

/**
 * @throws {NoServerError} no server answers at the address
 * @throws {RefusedError} the server refuses the connection
 */
export async function connect(place: TemporalPlace, { hasLocal = false } = {}): Promise<Client> {
  try {
    const connection = await Connection.connect({
      ...place.connectionOptions,
      connectTimeout: '5s',
      ...(place.apiKeyFile !== undefined && { apiKey: readApiKey(place.apiKeyFile) }),
      ...(place.isDevServer && { interceptors: [makeGrpcRetryInterceptor(quickRetries)] }),
    })
    const dataConverter = toDataConverter(place.payloadKeys)
    return new Client({ connection, namespace: place.namespace, dataConverter })
  } catch (cause) {
    const address = addressOf(place)
    const refusal = toTemporalRefusal(cause, { address, namespace: place.namespace })
    if (refusal !== undefined) throw refusal
    throw new NoServerError(`Temporal does not answer at ${address}.`, {
      cause,
      hint: `Start it with \`${connector`up`}\`${hasLocal ? ', set TEMPORAL_ADDRESS, or add --local' : ' or set TEMPORAL_ADDRESS'}.`,
    })
  }
}

export const addressOf = (place: Pick<TemporalPlace, 'connectionOptions'>) =>
  place.connectionOptions.address ?? 'localhost:7233'
