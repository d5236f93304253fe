import type { Client } from '@temporalio/client'
import { NoStateError, StateUnreadableError } from '../../core/state/errors.ts'
import type { Identity } from '../../core/runs/identity.ts'
import { refuseOtherFiles } from '../../core/state/postgres/membership.ts'
import { readStateFile } from '../../core/state/sqlite.ts'
import { filesIdOf, openFiles } from '../../worker/files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { openToRead } from '../runs/run-files.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Asked, awaitWorker, connect, findWorker, temporalPlace } from './temporal.ts'

/** A connection to Temporal and to the worker of this data folder. */
export interface Session {
  client: Client
  /** The workspace and service of the worker, as it reports them. */
  identity: Identity
  uiUrl: string | undefined
  /** Aborted with the reason when the session's own server or worker has ended. */
  lost: AbortSignal
  close(): Promise<void>
  /** Ends what the session started, immediately. Resolves to whether an active run continues or waits. */
  detach(): Promise<'continues' | 'waits'>
}

/**
 * Does work in a session and closes it.
 *
 * @throws the reason why the session was lost, which explains whatever failed because of that; else the work's error
 */
export async function inSession(session: Session, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    session.lost.throwIfAborted()
    throw error
  } finally {
    await session.close()
  }
}

export interface SessionOptions {
  settings: Settings
  terminal: Terminal
}

/** Connects to Temporal, and closes the connection if what is asked there is refused. */
async function openChecked<T>(
  { settings, terminal }: SessionOptions,
  ask: (asked: Asked) => Promise<T>,
): Promise<Asked & { answer: T }> {
  const place = temporalPlace(settings)
  const client = await connect(place, terminal)
  const asked = { client, settings, place, terminal }
  try {
    return { ...asked, answer: await ask(asked) }
  } catch (error) {
    await client.connection.close()
    throw error
  }
}

/**
 * Opens a client alone, for commands that need no worker; close it with `await using`.
 *
 * @throws {RefusedError} no server answers, or the worker has other keys
 */
export async function openClient(options: SessionOptions): Promise<Client & AsyncDisposable> {
  const { client } = await openChecked(options, async (asked) => {
    if ((await findWorker(asked)) !== undefined) await awaitWorker(asked)
  })
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.connection.close() })
}

/** @throws {RefusedError} no server answers, no worker listens on it, or it has other keys or another data folder */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { client, place, answer } = await openChecked(options, async (asked) => {
    const { identity } = await awaitWorker(asked)
    await refuseOtherFolder({ ...options, identity })
    return identity
  })
  return {
    client,
    identity: answer,
    uiUrl: place.uiUrl,
    lost: new AbortController().signal,
    close: () => client.connection.close(),
    detach: () => Promise.resolve('continues' as const),
  }
}

/** @throws {RefusedError} the worker has another data folder */
export async function refuseOtherFolder(of: { settings: Settings; identity: Identity }): Promise<void> {
  const { settings, identity } = of
  if ((await storeOf(settings)) === identity.store) return
  throw new RefusedError(`The worker uses another data folder than ${settings.dataDir}.`, {
    hint: 'Give both the same CONNECTOR_DATA_DIR: they exchange files there.',
  })
}

/** The id of the state; undefined if there is none. @throws {OtherBucketError} it belongs to another bucket */
async function storeOf(settings: Settings): Promise<string | undefined> {
  try {
    const { folder, database } = settings.state
    if (database === undefined) return readStateFile(folder)
    await using state = await openToRead(settings.state)
    const { shared: store } = state
    const bucket = openFiles(settings)
    if (store !== undefined && bucket !== undefined)
      await refuseOtherFiles({ store, files: await filesIdOf(bucket) })
    return state.storeId
  } catch (error) {
    // Without a state there is no worker.
    if (error instanceof StateUnreadableError || error instanceof NoStateError) return undefined
    throw error
  }
}
