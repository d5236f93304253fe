import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runImport } from '../../../scripts/runs/import.ts'
import { recoveryRequest, runRecovery } from '../../../scripts/runs/jobs.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld, startTestWorker } from '../export/world.ts'
import { retentionsCsv } from '../import/world.ts'
import { well } from '../recovery/world.ts'
import { personWho } from './person-who.ts'

/** The input of a run, as the command started its workflow. */
async function inputOf(run: string): Promise<unknown> {
  const client = await connectTemporal()
  const { events } = await client.workflow.getHandle(run).fetchHistory()
  const [payload] = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []
  return JSON.parse(Buffer.from(payload?.data ?? []).toString())
}

test.each([
  ['somebody at the terminal waits for it', true, { isInteractive: true, detach: false }],
  ['it is detached', false, { isInteractive: true, detach: true }],
  ['nobody is at the terminal', false, { isInteractive: false, detach: false }],
])(
  'a command has the breaker of its run wait for a person only if one is there: %s',
  async (_, attended, { isInteractive, detach }) => {
    const world = await createWorld(well)
    await startTestWorker(world)
    onTestFinished(() => void (process.exitCode = 0))
    const settings = readSettings({ env: world.env, cwd: world.dataDir })
    const terminal = { ...personWho([]).terminal, isInteractive }
    const call = { settings, terminal, yes: true, local: false, detach }

    const file = join(world.dataDir, 'rows.csv')
    await writeFile(file, retentionsCsv(1))
    await runImport({ ...call, file, reading: [], mapping: {}, input: { kind: 'retentions' } })
    const [imported = ''] = await readdir(join(world.dataDir, 'imports'))
    expect(await inputOf(imported)).toMatchObject({ attended })

    await runRecovery({ ...call, input: {} })
    const { workflowId } = recoveryRequest({ settings, input: {} })
    expect(await inputOf(workflowId)).toMatchObject({ attended, approval: false })
  },
)
