import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import { openState } from '../../core/state/open.ts'
import { repairState } from '../../scripts/commands/state.ts'
import { temporaryFolder } from '../core/state/temporary-folder.ts'
import { callCommand } from '../system/command-line/call-command.ts'

test('`state show` says that a data folder which no worker has used has no watermarks', async () => {
  const folder = await temporaryFolder()
  for (const dataDir of [folder, join(folder, 'absent')]) {
    const env = {
      BILLING_BASE_URL: 'https://api.example.test',
      BILLING_TOKEN: 't',
      BILLING_WORKSPACE: 'acc_1',
      CONNECTOR_DATA_DIR: dataDir,
    }
    const shown = await callCommand({ env }, ['state', 'show'])
    expect(shown, shown.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^No watermarks: every incremental export reads the whole list\.$/m),
    })
  }
})

test('`state repair` passes over a dry run of a recovery, which has staged nothing', async () => {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  const plan = { job: 'recovery', run: 'dry', dryRun: true }
  await createRunNotes(state).write('dry', { plan, snapshot: { staged: 0 } })
  await state.close()
  expect(await repairState({ place: { folder } })).toEqual([])
})
