import {
  Client,
  Connection,
  type GrpcRetryOptions,
  isRetryableError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { join } from 'node:path'
import { isLoopback } from '../../core/billing/connections.ts'
import { NoStateError, StateUnreadableError } from '../../core/state/errors.ts'
import type { Identity } from '../../core/runs/identity.ts'
import { refuseOtherFolder as refuseFolderOf } from '../../core/state/postgres/membership.ts'
import { openState, type StatePlace } from '../../core/state/open.ts'
import { readApiKey } from '../../worker/api-key.ts'
import { toDataConverter } from '../../worker/codec/data-converter.ts'
import type { PayloadKey } from '../../worker/codec/payload-key.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { parseWorkerIdentity, type ListedWorker } from '../../worker/worker-identity.ts'
import { localChannel } from '../dev-server/readiness.ts'
import { readServerRecord } from '../dev-server/server-record.ts'
import { toTemporalRefusal } from './temporal-refusal.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A connection to Temporal and to the worker of this data folder. */
export interface Session {
  client: Client
  /** The workspace and service of the worker, as it reports them. */
  identity: Identity
  uiUrl: string | undefined
  /** Aborted with the reason when the session is lost. After OwnerEnded, a new session can resume the run. */
  serverLost: AbortSignal
  close(): Promise<void>
  /** Ends what the session started, immediately. Resolves to whether an active run continues or waits. */
  detach(): Promise<'continues' | 'waits'>
}

/** The command whose Temporal server this session shared has ended. */
export class OwnerEnded extends Error {
  override readonly name = 'OwnerEnded'
}

/** Returns if a new session can resume the run of a session that failed with `error`; otherwise throws the reason. */
export function resumeOrThrow(options: { session: Session; error: unknown; terminal: Terminal }): void {
  const { session, error, terminal } = options
  if (!session.serverLost.aborted) throw error
  if (!(session.serverLost.reason instanceof OwnerEnded)) throw session.serverLost.reason
  terminal.note('The command that ran the Temporal server has ended; this one starts its own.')
}

export interface SessionOptions {
  settings: Settings
  terminal: Terminal
  /** Whether the command has the option `--local`; used for hints. */
  hasLocal?: boolean
}

export interface TemporalPlace {
  connectionOptions: { address?: string }
  namespace: string
  uiUrl: string | undefined
  payloadKeys: readonly PayloadKey[]
  /** Read again when it changes. */
  apiKeyFile?: string | undefined
  /** Set for a dev server on this machine: whether it is restarted when it ends. */
  local?: { comesBack: () => boolean }
}

/** The server of the TEMPORAL_* settings; without those, the running dev server of this data folder. */
export function temporalPlace(settings: Settings): TemporalPlace {
  const { connectionOptions: given, namespace } = loadClientConnectConfig({
    overrideEnvVars: { ...settings.environment },
  })
  const connectionOptions = isOnThisMachine(given) ? { ...given, ...localChannel } : given
  const { environment, dataDir, payloadKeys, temporalApiKeyFile: apiKeyFile } = settings
  const isNamed =
    environment['TEMPORAL_ADDRESS'] !== undefined || environment['TEMPORAL_PROFILE'] !== undefined
  const local = isNamed ? undefined : readServerRecord(join(dataDir, 'dev-server'))
  if (local === undefined)
    return { connectionOptions, namespace: namespace ?? 'default', uiUrl: undefined, payloadKeys, apiKeyFile }
  return {
    connectionOptions: { address: local.address, ...localChannel },
    namespace: 'default',
    uiUrl: local.uiUrl,
    payloadKeys,
    // Only the command that runs the server knows whether it is restarted.
    local: { comesBack: () => false },
  }
}

function isOnThisMachine({ address = 'localhost:7233' }: { address?: string }): boolean {
  const url = `http://${address}`
  return URL.canParse(url) && isLoopback(url)
}

/**
 * Opens a client alone, for commands that need no worker; close it with `await using`.
 *
 * @throws {RefusedError} no server answers, or the worker has other keys
 */
export async function openClient(
  settings: Settings,
  { hasLocal = false } = {},
): Promise<Client & AsyncDisposable> {
  const place = temporalPlace(settings)
  const client = await connect(place, { hasLocal })
  try {
    const worker = await findWorker({ client, settings, place })
    if (worker !== undefined) refuseOtherKeys({ worker, own: settings.payloadKeys })
  } catch (error) {
    await client.connection.close()
    throw error
  }
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.connection.close() })
}

/** @throws {RefusedError} no server answers, or no worker of this data folder listens on it */
export async function openSession({ settings, hasLocal = false }: SessionOptions): Promise<Session> {
  const place = temporalPlace(settings)
  const client = await connect(place, { hasLocal })
  try {
    const identity = await askWorker({ client, settings, place, hasLocal })
    await refuseOtherFolder({ settings, identity })
    return {
      client,
      identity,
      uiUrl: place.uiUrl,
      serverLost: new AbortController().signal,
      close: () => client.connection.close(),
      detach: () => Promise.resolve('continues' as const),
    }
  } catch (error) {
    await client.connection.close()
    throw error
  }
}

/**
 * In ms. A dev server restarts within seconds, on a busy machine within twenty; the client's own retries are up to
 * five seconds apart.
 */
const retryEveryMs = 250
const mostRetries = { comesBack: 80, unknown: 8 }

/** An aborted call ends only between two tries, so the retries must end when the server is gone for good. */
const localRetries = ({ comesBack }: { comesBack: () => boolean }): GrpcRetryOptions => ({
  delayFunction: () => retryEveryMs,
  retryableDecider: (attempt, status) =>
    attempt < (comesBack() ? mostRetries.comesBack : mostRetries.unknown) && isRetryableError(status),
})

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
      ...(place.local && { interceptors: [makeGrpcRetryInterceptor(localRetries(place.local))] }),
    })
    const dataConverter = toDataConverter(place.payloadKeys)
    return new Client({ connection, namespace: place.namespace, dataConverter })
  } catch (cause) {
    const address = addressOf(place)
    const refusal = toTemporalRefusal(cause, { address, namespace: place.namespace })
    if (refusal !== undefined) throw refusal
    throw new NoServerError(`Temporal does not answer at ${address}.`, {
      cause,
      hint: `Start it with \`connector up\`${hasLocal ? ', set TEMPORAL_ADDRESS, or add --local' : ' or set TEMPORAL_ADDRESS'}.`,
    })
  }
}

const addressOf = (place: Pick<TemporalPlace, 'connectionOptions'>) =>
  place.connectionOptions.address ?? 'localhost:7233'

async function askWorker(options: Asked & { hasLocal: boolean }): Promise<Identity> {
  const worker = await findWorker(options)
  if (worker !== undefined) {
    refuseOtherKeys({ worker, own: options.settings.payloadKeys })
    return worker.identity
  }
  throw new RefusedError(`No worker listens on the task queue ${options.settings.taskQueue}.`, {
    hint: `Start one with \`connector up\`${options.hasLocal ? ', `connector worker`, or add --local' : ' or `connector worker`'}.`,
  })
}

/** @throws {RefusedError} this command and the worker could not read each other's encrypted payloads */
export function refuseOtherKeys(of: { worker: ListedWorker; own: readonly PayloadKey[] }): void {
  const { worker, own } = of
  const [theirs] = worker.keyIds
  const [ours] = own.map(({ id }) => id)
  const isRead = theirs === undefined || own.some(({ id }) => id === theirs)
  if (isRead && (ours === undefined || worker.keyIds.includes(ours))) return
  const keyOf = (id: string | undefined) => (id === undefined ? 'no key' : `the key ${id}`)
  throw new RefusedError(
    `The worker encrypts what Temporal keeps with ${keyOf(theirs)}, and this command with ${keyOf(ours)}.`,
    { hint: 'Give both the same CONNECTOR_PAYLOAD_KEY_FILE. Nothing was started.' },
  )
}

interface Asked {
  client: Client
  settings: Settings
  place: Pick<TemporalPlace, 'connectionOptions' | 'namespace'>
}

/** Finds the worker on the task queue, as it reports itself; undefined if there is none. */
export async function findWorker(options: Asked): Promise<ListedWorker | undefined> {
  const { client, settings, place } = options
  const { namespace } = place
  const { pollers } = await client.workflowService
    .describeTaskQueue({ namespace, taskQueue: { name: settings.taskQueue } })
    .catch((cause: unknown) => {
      throw toTemporalRefusal(cause, { address: addressOf(place), namespace }) ?? cause
    })
  const seen = (pollers ?? []).toSorted(
    (a, b) => Number(b.lastAccessTime?.seconds) - Number(a.lastAccessTime?.seconds),
  )
  return seen.map((poller) => parseWorkerIdentity(poller.identity ?? '')).find((one) => one !== undefined)
}

async function refuseOtherFolder({
  settings,
  identity,
}: {
  settings: Settings
  identity: Identity
}): Promise<void> {
  if ((await storeOf(settings.state)) === identity.store) return
  throw new RefusedError(`The worker uses another data folder than ${settings.dataDir}.`, {
    hint: 'Give both the same CONNECTOR_DATA_DIR: they exchange files there.',
  })
}

/** The id of the state; undefined if there is none. @throws {OtherFolderError} it belongs to another data folder */
async function storeOf(place: StatePlace): Promise<string | undefined> {
  try {
    const state = await openState({ ...place, readOnly: true })
    try {
      const { shared: store } = state
      if (store !== undefined) await refuseFolderOf({ store, folder: place.folder })
      return state.storeId
    } finally {
      await state.close()
    }
  } catch (error) {
    // Without a state there is no worker.
    if (error instanceof StateUnreadableError || error instanceof NoStateError) return undefined
    throw error
  }
}
