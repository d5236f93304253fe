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
import { StateUnreadableError } from '../../core/state/errors.ts'
import type { Identity } from '../../core/runs/identity.ts'
import { openState } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { parseWorkerIdentity } from '../../worker/worker-identity.ts'
import { localChannel } from '../dev-server/readiness.ts'
import { readServerRecord } from '../dev-server/server-record.ts'
import { toTemporalRefusal } from './temporal-refusal.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A way to Temporal and to the worker that serves this data folder. */
export interface Session {
  client: Client
  /** Whom the worker acts on, in its own words. */
  identity: Identity
  uiUrl: string | undefined
  /**
   * Aborted when the session cannot go on, with the error that says why: with OwnerEnded a new session resumes what
   * this one did.
   */
  gone: AbortSignal
  close(): Promise<void>
  /** Ends what the session started, at once. What becomes of a run that has not ended. */
  letGo(): Promise<'goes on' | 'waits'>
}

/** The command whose Temporal server this one used has ended. */
export class OwnerEnded extends Error {
  override readonly name = 'OwnerEnded'
}

/** Returns when a new session can resume what one that failed with `error` did. Else throws the reason. */
export function resumeOrThrow(options: { session: Session; error: unknown; terminal: Terminal }): void {
  const { session, error, terminal } = options
  if (!session.gone.aborted) throw error
  if (!(session.gone.reason instanceof OwnerEnded)) throw session.gone.reason
  terminal.note('The command whose Temporal server this one used has ended: this one starts its own.')
}

export interface SessionOptions {
  settings: Settings
  terminal: Terminal
}

export interface TemporalPlace {
  connectionOptions: { address?: string }
  namespace: string
  uiUrl: string | undefined
  /** A dev server on this machine; whether it is started again when it ends. */
  local?: { comesBack: () => boolean }
}

/** Where Temporal is: what TEMPORAL_* say, else the living dev server of this data folder. */
export function temporalPlace(settings: Settings): TemporalPlace {
  const { connectionOptions: given, namespace } = loadClientConnectConfig({
    overrideEnvVars: { ...settings.environment },
  })
  const connectionOptions = isOnThisMachine(given) ? { ...given, ...localChannel } : given
  const { environment, dataDir } = settings
  if (environment['TEMPORAL_ADDRESS'] !== undefined || environment['TEMPORAL_PROFILE'] !== undefined) {
    return { connectionOptions, namespace: namespace ?? 'default', uiUrl: undefined }
  }
  const local = readServerRecord(join(dataDir, 'dev-server'))
  return local === undefined
    ? { connectionOptions, namespace: namespace ?? 'default', uiUrl: undefined }
    : {
        connectionOptions: { address: local.address, ...localChannel },
        namespace: 'default',
        uiUrl: local.uiUrl,
        // Its own command knows.
        local: { comesBack: () => false },
      }
}

function isOnThisMachine({ address = 'localhost:7233' }: { address?: string }): boolean {
  const url = `http://${address}`
  return URL.canParse(url) && isLoopback(url)
}

/** A client alone, for commands that need no worker; closed by `await using`. */
export async function openClient(settings: Settings): Promise<Client & AsyncDisposable> {
  const client = await connect(temporalPlace(settings))
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.connection.close() })
}

/** Opens a session over servers that run already. Refuses where no worker listens or it has another data folder. */
export async function openSession({ settings }: SessionOptions): Promise<Session> {
  const place = temporalPlace(settings)
  const client = await connect(place)
  try {
    const identity = await askWorker({ client, settings, place })
    await refuseOtherFolder({ settings, identity })
    return {
      client,
      identity,
      uiUrl: place.uiUrl,
      gone: new AbortController().signal,
      close: () => client.connection.close(),
      letGo: () => Promise.resolve('goes on' as const),
    }
  } catch (error) {
    await client.connection.close()
    throw error
  }
}

/** A dev server is back within seconds, on a busy machine within twenty; the client's own tries are up to five seconds apart. */
const retryEveryMs = 250
const mostRetries = { comesBack: 80, unknown: 8 }

/** An abort of a call is heard only between two tries, so that they must end when the server is gone for good. */
const localRetries = ({ comesBack }: { comesBack: () => boolean }): GrpcRetryOptions => ({
  delayFunction: () => retryEveryMs,
  retryableDecider: (attempt, status) =>
    attempt < (comesBack() ? mostRetries.comesBack : mostRetries.unknown) && isRetryableError(status),
})

export async function connect(place: TemporalPlace): Promise<Client> {
  try {
    const connection = await Connection.connect({
      ...place.connectionOptions,
      connectTimeout: '5s',
      ...(place.local && { interceptors: [makeGrpcRetryInterceptor(localRetries(place.local))] }),
    })
    return new Client({ connection, namespace: place.namespace })
  } catch (cause) {
    const address = addressOf(place)
    const refusal = toTemporalRefusal(cause, { address, namespace: place.namespace })
    if (refusal !== undefined) throw refusal
    throw new RefusedError(`Temporal does not answer at ${address}.`, {
      cause,
      hint: 'Start it with `connector up`, set TEMPORAL_ADDRESS, or add --local to run everything in this command.',
    })
  }
}

const addressOf = (place: TemporalPlace) => place.connectionOptions.address ?? 'localhost:7233'

async function askWorker(options: Asked): Promise<Identity> {
  const identity = await findWorker(options)
  if (identity !== undefined) return identity
  throw new RefusedError(`No worker listens on the task queue ${options.settings.taskQueue}.`, {
    hint: 'Start one with `connector worker` or `connector up`, or add --local to run everything in this command.',
  })
}

interface Asked {
  client: Client
  settings: Settings
  place: TemporalPlace
}

/** Whom the worker that listens on the task queue serves, in its own words; undefined where none does. */
export async function findWorker(options: Asked): Promise<Identity | undefined> {
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
  if ((await storeOf(settings.dataDir)) === identity.store) return
  throw new RefusedError(`The worker has another data folder than ${settings.dataDir}.`, {
    hint: 'Give both the same CONNECTOR_DATA_DIR: files pass between them there.',
  })
}

async function storeOf(folder: string): Promise<string | undefined> {
  try {
    const state = await openState({ folder, readOnly: true })
    await state.close()
    return state.storeId
  } catch (error) {
    // Nothing was ever kept there, so it is no worker's.
    if (error instanceof StateUnreadableError) return undefined
    throw error
  }
}
