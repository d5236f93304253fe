import { type StoredInput, filesOf } from '../../core/imports/stored-input.ts'
import type { StepFolder } from '../../core/runs/step-folder.ts'

/** Fetches the stored input of a run, which no step changes. */
export async function fetchInput(folder: StepFolder, { file, mapping }: StoredInput): Promise<void> {
  const { dataDir } = folder
  await folder.fetchFile(mapping)
  for (const path of await filesOf({ dataDir, file, mapping })) await folder.fetchFile(path)
}
