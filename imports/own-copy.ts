import { join, relative } from 'node:path'
import { copiedIn, fingerprintOf } from './copy-input.ts'
import { UnreadableFileError } from './errors.ts'
import { type ImportPlan, runFiles } from './import-plan.ts'

type Copied = Pick<
  ImportPlan,
  'folder' | 'fingerprint' | 'kind' | 'file' | 'lines' | 'columns' | 'sendAgain' | 'identity'
>

/** Whether a run's own copy of its input is still what it was when the run began. */
export async function isOwnCopyWhole({ plan, dataDir }: { plan: Copied; dataDir: string }): Promise<boolean> {
  const { kind, columns, sendAgain, identity, file, lines } = plan
  const { workspace, mode } = identity
  const input = join(plan.folder, runFiles.input)
  const folder = join(dataDir, input)
  const names = { file: relative(input, file), ...(lines !== undefined && { lines: relative(input, lines) }) }
  try {
    const copied = await copiedIn({ folder, ...names })
    const what = { kind, columns, sendAgain, workspace, mode }
    return (await fingerprintOf({ folder, copied, ...what })) === plan.fingerprint
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** @throws {UnreadableFileError} where the copy was cut short or changed */
export async function refuseDamagedCopy(options: { plan: Copied; dataDir: string }): Promise<void> {
  if (await isOwnCopyWhole(options)) return
  const path = join(options.dataDir, options.plan.folder, runFiles.input)
  throw new UnreadableFileError(
    `The run's own copy of its file, in ${path}, is not what it was: it was cut short or changed. Nothing was sent. ` +
      'Start the same import again with the original file.',
  )
}
