import { randomUUID } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { exportPath } from '../../../core/destinations/files/publish.ts'
import { verifyStoredExport } from '../../../core/destinations/files/verify.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { parsePointer } from '../../../core/destinations/files/pointers.ts'
import { createBucketStore } from '../../../core/storage/bucket-store.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { createWorkplace, facts, noise } from '../../core/destinations/publication.ts'
import { type Fault, randomFrom, startFaultProxy } from './fault-proxy.ts'
import { keys, startGateway } from './gateway.ts'

export interface Played {
  runs: number
  attempts: number
  /** Attempts that the store's faults ended; each was made again. */
  repeated: number
  calls: number
  faults: Partial<Record<Fault, number>>
  /** How often a pointer was looked at, and how often it had moved. */
  looks: number
  moves: number
  ms: number
  problems: string[]
}

/**
 * Publishes many reads of a list to a bucket from three workers at once, out of order and some of them twice, while 5 %
 * of the answers are 503, 1 % are lost after they took effect, and the bucket is away for a while. Workers stand still at
 * random moments between two calls. Meanwhile, a reader without faults follows both pointers.
 */
export async function playFaults(options: {
  seed: number
  runs: number
  awayMs: number
  format: 'csv' | 'parquet'
}): Promise<Played> {
  const { runs, awayMs, format } = options
  const random = randomFrom(options.seed)
  const startedAt = performance.now()
  const gateway = await startGateway()
  const proxy = await startFaultProxy(gateway.endpoint)
  const workplace = await createWorkplace()
  const played = { runs, attempts: 0, repeated: 0, looks: 0, moves: 0, problems: [] as string[] }
  try {
    const prefix = randomUUID()
    const openStore = (endpoint: string) =>
      createBucketStore({
        bucket: 'exports',
        prefix,
        config: { endpoint, region: 'us-east-1', credentials: keys },
      })
    const reader = openStore(gateway.endpoint)
    let awayUntil = 0
    let calls = 0
    proxy.setFaults(() => {
      if (performance.now() < awayUntil) return 'away'
      calls += 1
      return calls % 100 === 50 ? 'lost' : calls % 20 === 7 ? 'unavailable' : undefined
    })
    const publications = await Promise.all(
      Array.from({ length: runs }, (_, at) =>
        toRun({ workplace, at, isLarge: at % 10 === 3, proven: random() < 0.8 }),
      ),
    )
    const queue = publications
      .flatMap((publication) => (random() < 0.3 ? [publication, publication] : [publication]))
      // Nearly in the order of their reads, so that most of them move a pointer at the same time as another one.
      .map((publication, at) => ({ publication, order: at + random() * 6 }))
      .toSorted((a, b) => b.order - a.order)
    const half = Math.floor(queue.length / 2)
    const worker = async (name: number) => {
      const destination = format === 'csv' ? createCsvDestination() : createParquetDestination()
      const store = standingStill(openStore(proxy.endpoint), random)
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        if (queue.length === half) awayUntil = performance.now() + awayMs
        const publication = { ...next.publication, store, folder: `${next.publication.folder}-${name}` }
        for (;;) {
          played.attempts += 1
          try {
            await destination.publish(publication)
            break
          } catch (error) {
            // What Temporal repeats; anything else is a failure.
            if ((error as { retryable?: boolean }).retryable !== true) throw error
            played.repeated += 1
            await sleep(50)
          }
        }
      }
    }
    const end = new AbortController()
    const folder = `exports/${format === 'csv' ? '' : 'parquet/'}customers`
    const watching = Promise.all(
      ['latest', 'latest-proven'].map((name) => watch({ reader, folder, name, played, signal: end.signal })),
    )
    await Promise.all([1, 2, 3].map(worker))
    end.abort()
    await watching
    await compare({ reader, folder, publications, problems: played.problems })
    const { calls: all = 0, ...faults } = Object.fromEntries(proxy.counts) as Record<string, number>
    return { ...played, calls: all, faults, ms: performance.now() - startedAt }
  } finally {
    await proxy.close()
    await gateway.close()
    await workplace.close()
  }
}

/** A read that began `at` minutes after the first one; some have files of more than one part of an upload. */
function toRun(options: {
  workplace: Awaited<ReturnType<typeof createWorkplace>>
  at: number
  isLarge: boolean
  proven: boolean
}): Promise<Publication> {
  const { workplace, at, isLarge, proven } = options
  const verdict = proven
    ? { verdict: 'proven' as const, reasons: [] }
    : { verdict: 'unproven' as const, reasons: ['a link was lost'] }
  const rows = isLarge ? noise(34e6) : [[`{"id":"cus_${at}"}`]]
  const startedAt = new Date(Date.parse(facts.startedAt) + at * 60_000).toISOString()
  return workplace.toPublication('customers', rows, {
    run: `run-${String(at).padStart(5, '0')}`,
    facts: { ...facts, ...verdict, startedAt },
  })
}

/** Stands still before some calls that write, as a frozen process does between its look and its write. */
function standingStill(store: FileStore, random: () => number): FileStore {
  const wait = async () => {
    if (random() < 0.3) await sleep(random() * 300)
  }
  return {
    ...store,
    create: async (...call) => (await wait(), store.create(...call)),
    replace: async (...call) => (await wait(), store.replace(...call)),
  }
}

/** Follows a pointer: it never goes back, and what it leads to is there. */
async function watch(options: {
  reader: FileStore
  folder: string
  name: string
  played: Pick<Played, 'looks' | 'moves' | 'problems'>
  signal: AbortSignal
}): Promise<void> {
  const { reader, folder, name, played, signal } = options
  let last = ''
  while (!signal.aborted) {
    await sleep(5)
    const text = (await reader.read(`${folder}/${name}.json`))?.text
    played.looks += 1
    if (text === undefined) continue
    const pointer = parsePointer(text)
    if (pointer === undefined) {
      played.problems.push(`${name} is not a pointer: ${text}`)
      continue
    }
    if (pointer.run === last) continue
    played.moves += 1
    if (pointer.run < last) played.problems.push(`${name} went back from ${last} to ${pointer.run}`)
    if (name === 'latest-proven' && pointer.verdict !== 'proven')
      played.problems.push(`${name} leads to an unproven read`)
    last = pointer.run
    const { problems, manifest } = await verifyStoredExport(reader, `${folder}/${dirname(pointer.manifest)}`)
    played.problems.push(...problems)
    if (manifest?.verdict !== pointer.verdict)
      played.problems.push(`${name}: ${pointer.run} has another verdict`)
  }
}

/** Compares every export in the bucket with what was to be published. */
async function compare(options: {
  reader: FileStore
  folder: string
  publications: readonly Publication[]
  problems: string[]
}): Promise<void> {
  const { reader, folder, publications, problems } = options
  for (const publication of publications) {
    const { run, facts: read } = publication
    const verified = await verifyStoredExport(reader, `${folder}/${basename(exportPath(publication))}`)
    problems.push(...verified.problems)
    const { manifest } = verified
    if (manifest?.startedAt !== read.startedAt || manifest.verdict !== read.verdict)
      problems.push(`${run} has the manifest of another read`)
  }
  const newest = (proven: boolean) =>
    publications.filter(({ facts: read }) => !proven || read.verdict === 'proven').at(-1)?.run
  for (const [name, expected] of [
    ['latest', newest(false)],
    ['latest-proven', newest(true)],
  ]) {
    const run = parsePointer((await reader.read(`${folder}/${name}.json`))?.text)?.run
    if (run !== expected) problems.push(`${name} leads to ${run}, not to ${expected}`)
  }
}
