import type { Info } from '@temporalio/activity'
import { MockActivityEnvironment } from '@temporalio/testing'
import type { Client } from '@temporalio/client'
import { DefaultLogger } from '@temporalio/worker'
import { type Activities, createActivities } from '../../../activities/index.ts'
import { createBilling } from '../../../core/billing/client.ts'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { cached } from '../../../core/storage/cached.ts'
import { openState } from '../../../core/state/open.ts'
import type { StateDatabase } from '../../../core/state/postgres/postgres-store.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { folderPattern } from './folders.ts'
import { openGate } from './gate.ts'

export type StepName = keyof Activities

/** One try of a step, as Temporal sees it. */
export interface Attempt {
  result: Promise<unknown>
  /** Asks it to end, as a pause or a stop does. */
  cancel: () => void
}

interface Start {
  name: StepName
  input: unknown
  info: Partial<Info>
  onHeartbeat?: (details: unknown) => void
}

/** After a kill or a restore, the folder is another one, so that the earlier process cannot touch it. */
export interface WorkerOptions {
  sandbox: Sandbox
  dataDir: string
  settleMs: number
  /** How long a record may stay invisible after its `created`. */
  readLagMs: number
  /** Temporal, as far as steps ask it whether other runs have ended. */
  client: Client
  rangeQueue?: string | undefined
  /** Where several workers share the files of their runs. Default: a worker alone. */
  files?: FileStore | undefined
  /** Default: state.db. */
  database?: StateDatabase | undefined
  /** Default: true. */
  mayWrite?: boolean | undefined
}

/** All steps as a worker registers them, over real files and real sockets. */
export async function openWorker(options: WorkerOptions) {
  const {
    sandbox,
    dataDir,
    settleMs,
    readLagMs,
    client,
    rangeQueue = 'ranges',
    files,
    database,
    mayWrite = true,
  } = options
  const gate = await openGate(sandbox.port)
  let isHeld = true
  const state = await openState({ folder: dataDir, database, isHeld: () => isHeld })
  const billing = createBilling({
    baseUrl: gate.url,
    workspace: sandbox.workspace,
    testMode: false,
    token: async () => sandbox.token,
    rate: { requestsPerSecond: Infinity },
    timeoutSeconds: 5,
    readWaitMs: () => 1,
  })
  const activities = createActivities({
    billing,
    state,
    identity: { workspace: sandbox.workspace, baseUrl: sandbox.url, mode: 'live', store: state.storeId },
    dataDir,
    shared: cached(dataDir, files),
    files,
    outDirs: [],
    requestsPerSecond: 1_000,
    concurrency: 4,
    // Half of the lists are divided.
    recordsPerRange: 100,
    readLagMs,
    settleMs,
    mayWrite: () => mayWrite,
    hashKey: '',
    versions: { connector: 'chaos' },
    destinations: new Map([['csv', createCsvDestination()]]),
    channels: [],
    searchAttributes: async () => [],
    heartbeats: 'local',
    rangeQueue,
    encrypts: false,
    ui: { namespace: 'default', url: undefined },
    observer: { onPage: () => {}, onEvent: () => {} },
    scheduleTimes: async () => [],
  })
  const running = new Set<Promise<unknown>>()

  const start = ({ name, input, info, onHeartbeat }: Start): Attempt => {
    const environment = new MockActivityEnvironment(info, { client, logger: new DefaultLogger('ERROR') })
    environment.on('heartbeat', (details: unknown) => onHeartbeat?.(details))
    const step = activities[name] as (input: unknown) => Promise<unknown>
    // On a real machine what was restored has the path of before.
    const text = JSON.stringify(input).replaceAll(folderPattern, dataDir)
    const result = environment.run(step, JSON.parse(text) as unknown)
    const ended = result.catch(() => undefined).finally(() => running.delete(ended))
    running.add(ended)
    return { result, cancel: () => environment.cancel() }
  }

  return {
    dataDir,
    state,
    gate,
    start,
    /** Somebody removed the file that it has locked. */
    loseLock: () => {
      isHeld = false
    },
    /** What it has begun and not ended; undefined where there is nothing. */
    underWay: () => (running.size === 0 ? undefined : Promise.all(running)),
    /** Waits for all that it has begun. */
    close: async () => {
      await Promise.all(running)
      gate.cut()
      await state.close()
    },
  }
}

export type ChaosWorker = Awaited<ReturnType<typeof openWorker>>
