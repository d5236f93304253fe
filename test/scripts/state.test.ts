import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../system/command-line/call-command.ts'

test('`state` says that a data folder which no worker has used has no watermarks', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'state-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const dataDir of [folder, join(folder, 'absent')]) {
    const env = {
      BILLING_BASE_URL: 'https://api.example.test',
      BILLING_TOKEN: 't',
      BILLING_WORKSPACE: 'acc_1',
      CONNECTOR_DATA_DIR: dataDir,
    }
    const shown = await callCommand({ env }, ['state'])
    expect(shown, shown.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^No watermarks: every incremental export reads the whole list\.$/m),
    })
  }
})
