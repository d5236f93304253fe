import { utimes } from 'node:fs/promises'
import type { Execution } from '../../runs/name.ts'
import type { SharedFolder } from '../../storage/shared-folder.ts'
import type { ExportPlan } from '../plan.ts'
import { latestCheckpoint } from './checkpoint.ts'
import { markPublishing, takeTurn } from './publish-record.ts'
import { partsFolder } from './read-folder.ts'

/** A resource that a run has read completely, and the checkpoint to publish. */
export interface KeptRead {
  resource: ExportPlan['resources'][number]
  checkpoint: string
}

/** Marks the completed reads of a run as in use, so that no other run adopts or prunes them. */
export async function reserveParts(options: {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
  by: Execution
}): Promise<KeptRead[]> {
  const { dataDir, shared, plan, by } = options
  const { run, resources, to: asked } = plan
  return await takeTurn(dataDir, async () => {
    const found: KeptRead[] = []
    for (const resource of resources) {
      const folder = partsFolder({ dataDir, run, resource })
      const last = await latestCheckpoint({ shared, folder })
      if (last?.outcome === undefined) continue
      await markPublishing({ shared, folder }, { execution: by, asked })
      found.push({ resource, checkpoint: last.name })
    }
    const now = new Date()
    // Parts are pruned by the age of the run's folder.
    if (found.length > 0 && !shared.isShared)
      await utimes(partsFolder({ dataDir, run, resource: '' }), now, now)
    return found
  })
}
