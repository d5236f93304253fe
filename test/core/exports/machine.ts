import type { Checkpoint } from '../../../core/exports/parts/checkpoint.ts'
import { partsFolder } from '../../../core/exports/parts/read-plan.ts'
import { readSegment, type SegmentSetup } from '../../../core/exports/parts/read-segment.ts'
import type { RangeState } from '../../../core/reading/range-state.ts'
import { noDrift } from '../../../core/tables/drift.ts'
import { noTotals } from '../../../core/tables/totals.ts'
import { cached, type SharedFolder } from '../../../core/storage/cached.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { createPlan } from '../../system/export/plan.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

/** A store that several machines have in common. */
export const newStore = async () => createFolderStore(await temporaryFolder())

/** A machine that reads customers in the run `r`, or another list: one of several with a store, else alone. */
export async function newMachine(store?: ReturnType<typeof createFolderStore>, resource = 'customers') {
  const dataDir = await temporaryFolder()
  return { dataDir, shared: cached(dataDir, store), folder: partsFolder({ dataDir, run: 'r', resource }) }
}
export type Machine = Awaited<ReturnType<typeof newMachine>>

/** The options of a read, without its machine. */
export const readDeps = {
  state: { now: () => Date.parse('2026-11-20T00:00:00Z') },
  concurrency: 1,
  recordsPerRange: 1_000,
  readLagMs: 0,
  hashKey: '',
}

/** Reads to the end, unless told otherwise. */
export const readOn = (
  machine: { dataDir: string; shared: SharedFolder; folder: string },
  how: Pick<SegmentSetup, 'resource' | 'open'> & Partial<SegmentSetup>,
) =>
  readSegment({
    deps: { ...machine, ...readDeps },
    plan: createPlan({ run: 'r', resources: [how.resource] }),
    folder: machine.folder,
    from: undefined,
    ms: 60_000,
    cancelled: new AbortController().signal,
    onProgress: () => undefined,
    onPage: () => undefined,
    ...how,
  })

/** A checkpoint of a read that has begun and has nothing yet, with what is told otherwise. */
export const checkpointOf = (more: Partial<Checkpoint> & { name: string }): Checkpoint => ({
  parts: [],
  drift: noDrift(),
  totals: noTotals(),
  read: { startedAt: 1 } as RangeState,
  savedAt: '',
  ...more,
})
