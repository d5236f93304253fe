import { connector } from '../../core/runs/view/shell.ts'
import {
  Client,
  Connection,
  type GrpcRetryOptions,
  isGrpcServiceError,
  isRetryableError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLoopback } from '../../core/billing/connections.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'
import { readApiKey } from '../../worker/settings/rotating.ts'
import { toDataConverter } from '../../worker/codec/payload-codec.ts'
import type { PayloadKey } from '../../worker/settings/kinds.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { localChannel } from '../dev-server/readiness.ts'
import { findServer } from '../dev-server/server-record.ts'
import { RefusedError } from '../terminal/failures.ts'
import { tellIfSlow, type Terminal } from '../terminal/terminal.ts'
import { type ListedWorker, parseWorkerIdentity } from '../../worker/identity.ts'
import { findPollers } from '../../worker/temporal-queries.ts'

/** The Temporal server that a command uses. */
export interface TemporalPlace {
  connectionOptions: { address?: string }
  namespace: string
  uiUrl: string | undefined
  payloadKeys: readonly PayloadKey[]
  /** Whether the settings name it. */
  isNamed?: boolean
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
  const { dataDir, payloadKeys, temporalApiKeyFile: apiKeyFile } = settings
  const isNamed = namesServer(settings)
  const local = isNamed ? undefined : findServer(dataDir)
  if (local === undefined) {
    const named = { connectionOptions, namespace: namespace ?? 'default', isNamed }
    return { ...named, uiUrl: undefined, payloadKeys, apiKeyFile }
  }
  return devServerPlace(local, payloadKeys)
}

/** A dev server on this machine. */
export const devServerPlace = (
  { address, uiUrl }: { address: string; uiUrl: string },
  payloadKeys: readonly PayloadKey[],
) => ({
  connectionOptions: { address, ...localChannel },
  namespace: 'default',
  uiUrl,
  payloadKeys,
  isDevServer: true,
})

/** Whether the settings name a Temporal server, so that commands look for no other. */
export const namesServer = ({ environment }: Pick<Settings, 'environment'>): boolean =>
  environment['TEMPORAL_ADDRESS'] !== undefined || environment['TEMPORAL_PROFILE'] !== undefined

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
 * Connects to Temporal, and says so if that takes long.
 *
 * @throws {NoServerError} no server answers at the address
 * @throws {RefusedError} the server refuses the connection
 */
export async function connect(place: TemporalPlace, terminal: Pick<Terminal, 'note'>): Promise<Client> {
  const address = addressOf(place)
  try {
    const work = Connection.connect({
      ...place.connectionOptions,
      connectTimeout: '5s',
      ...(place.apiKeyFile !== undefined && { apiKey: readApiKey(place.apiKeyFile) }),
      ...(place.isDevServer && { interceptors: [makeGrpcRetryInterceptor(quickRetries)] }),
    })
    const connection = await tellIfSlow({ terminal, line: `Waiting for Temporal at ${address} ...`, work })
    const dataConverter = toDataConverter(place.payloadKeys)
    return new Client({ connection, namespace: place.namespace, dataConverter })
  } catch (cause) {
    const refusal = toTemporalRefusal(cause, { address, namespace: place.namespace })
    if (refusal !== undefined) throw refusal
    throw new NoServerError(`Temporal does not answer at ${address}.`, {
      cause,
      hint: place.isNamed
        ? 'Start that server, correct TEMPORAL_ADDRESS, or start jobs with --local.'
        : `Start it with \`${connector`up`}\`, set TEMPORAL_ADDRESS, or start jobs with --local.`,
    })
  }
}

const addressOf = (place: Pick<TemporalPlace, 'connectionOptions'>) =>
  place.connectionOptions.address ?? 'localhost:7233'

// gRPC status codes (https://grpc.io/docs/guides/status-codes).
const notFound = 5
const permissionDenied = 7
const unauthenticated = 16

/** Converts a refusal by Temporal to a sentence; undefined for any other error. */
function toTemporalRefusal(
  cause: unknown,
  { address, namespace }: { address: string; namespace: string },
): RefusedError | undefined {
  if (!isGrpcServiceError(cause)) return undefined
  const code: number = cause.code
  if (code === notFound)
    return new RefusedError(`Temporal at ${address} has no namespace ${namespace}.`, {
      cause,
      hint: `Set TEMPORAL_NAMESPACE to an existing one, or create it: \`temporal operator namespace create --namespace ${namespace}\`.`,
    })
  if (code === permissionDenied || code === unauthenticated)
    return new RefusedError(`Temporal at ${address} refuses access to the namespace ${namespace}.`, {
      cause,
      hint: 'Set a valid key or certificate: TEMPORAL_API_KEY, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH.',
    })
  return undefined
}

/** How long a worker may take from its start to its first poll, in ms: Temporal lists it from then on. */
const firstPollMs = 2_000

/**
 * Finds the worker on the task queue, also one that has only just started, and says so if that takes long. A worker that
 * has just stopped is still listed, so one with other keys may be about to be replaced.
 *
 * @throws {RefusedError} none listens, or it has other keys
 */
export function awaitWorker(options: Asked & { withinMs?: number }): Promise<ListedWorker> {
  const { terminal, settings, withinMs = firstPollMs } = options
  const line = `Waiting for a worker on the task queue ${settings.taskQueue} ...`
  return tellIfSlow({ terminal, line, work: pollWorker(options, performance.now() + withinMs) })
}

async function pollWorker(asked: Asked, until: number): Promise<ListedWorker> {
  let refusal: RefusedError | undefined
  for (; performance.now() < until; await sleep(50)) {
    const worker = await findWorker(asked)
    if (worker === undefined) continue
    refusal = refusalOfKeys({ worker, own: asked.settings.payloadKeys })
    if (refusal === undefined) return worker
  }
  if (refusal !== undefined) throw refusal
  throw new RefusedError(`No worker listens on the task queue ${asked.settings.taskQueue}.`, {
    hint: `Start one with \`${connector`up`}\` or \`${connector`worker`}\`, or start jobs with --local.`,
  })
}

/** Undefined if this command and the worker can read each other's encrypted payloads. */
function refusalOfKeys(of: { worker: ListedWorker; own: readonly PayloadKey[] }): RefusedError | undefined {
  const { worker, own } = of
  const [theirs] = worker.keyIds
  const [ours] = own.map(({ id }) => id)
  const isRead = theirs === undefined || own.some(({ id }) => id === theirs)
  if (isRead && (ours === undefined || worker.keyIds.includes(ours))) return undefined
  const keyOf = (id: string | undefined) => (id === undefined ? 'no key' : `the key ${id}`)
  return new RefusedError(
    `The worker encrypts what Temporal keeps with ${keyOf(theirs)}, and this command with ${keyOf(ours)}.`,
    { hint: 'Give both the same CONNECTOR_PAYLOAD_KEY_FILE. Nothing was started.' },
  )
}

/** Where a command looks for its worker. */
export interface Asked {
  client: Client
  settings: Settings
  place: TemporalPlace
  terminal: Pick<Terminal, 'note'>
}

/** Finds the worker on the task queue, as it reports itself; undefined if there is none. */
export async function findWorker(
  options: Pick<Asked, 'client' | 'settings'> & {
    place: Pick<TemporalPlace, 'connectionOptions' | 'namespace'>
  },
): Promise<ListedWorker | undefined> {
  const { client, settings, place } = options
  const { namespace } = place
  const pollers = await findPollers({
    service: client.workflowService,
    namespace,
    taskQueue: settings.taskQueue,
  }).catch((cause: unknown) => {
    throw toTemporalRefusal(cause, { address: addressOf(place), namespace }) ?? cause
  })
  return pollers.map(parseWorkerIdentity).find((one) => one !== undefined)
}
