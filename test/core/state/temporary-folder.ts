import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openState, type State } from '../../../core/state/open.ts'

/** A fresh folder that is gone after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'connector-state-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A state of its own, or that in a folder, which is closed after the test. */
export async function temporaryState(folder?: string): Promise<State> {
  const state = await openState({ folder: folder ?? (await temporaryFolder()) })
  onTestFinished(() => state.close())
  return state
}
