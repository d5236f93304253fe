import { utimes } from 'node:fs/promises'
import type { SharedFolder } from '../../storage/cached.ts'
import { orMissing } from '../../storage/system-errors.ts'
import type { ExportPlan } from '../plan.ts'
import { latestCheckpoint } from './checkpoint.ts'
import { partsFolder } from './read-folder.ts'

/** A resource that a run has read completely, and the checkpoint to publish. */
export interface KeptRead {
  resource: ExportPlan['resources'][number]
  checkpoint: string
}

/** Finds the completed reads of a run, which are kept for another 14 days from now on. */
export async function reserveParts(options: {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
}): Promise<KeptRead[]> {
  const { dataDir, shared, plan } = options
  const { run, resources } = plan
  const found: KeptRead[] = []
  for (const resource of resources) {
    const folder = partsFolder({ dataDir, run, resource })
    const last = await latestCheckpoint({ shared, folder })
    if (last?.outcome === undefined) continue
    found.push({ resource, checkpoint: last.name })
  }
  const now = new Date()
  // Parts are pruned by the age of the run's folder.
  if (found.length > 0) await orMissing(utimes(partsFolder({ dataDir, run, resource: '' }), now, now))
  return found
}
