import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { auditImport } from '../../../core/imports/close.ts'
import { type ImportPlan, runFiles } from '../../../core/imports/input.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { cached } from '../../../core/storage/cached.ts'
import { clientOf, retentionRows, startRun } from '../changes/engine.ts'
import { temporaryFolder, temporaryState } from '../state/temporary-folder.ts'

test.for([
  ['cannot be opened', 'EISDIR', (file: string) => mkdir(file)],
  ['are on a full disk', 'ENOSPC', (file: string) => symlink('/dev/full', file)],
] as const)('findings of an audit that %s fail its step, and not the worker', async ([, code, spoil]) => {
  const { sandbox, engine } = await startRun(changeKinds['create-retention'], retentionRows(3))
  await engine.finish()
  for (const id of sandbox.control.ids({ resource: 'retentions' }))
    sandbox.control.delete({ resource: 'retentions', id })
  const dataDir = await temporaryFolder()
  await mkdir(join(dataDir, 'run'))
  await spoil(join(dataDir, 'run', runFiles.findings))
  const notes = createRunNotes(await temporaryState(dataDir))
  const plan = { run: engine.run, folder: 'run', identity: { workspace: 'acc_sandbox', mode: 'live' } }
  const auditing = auditImport({
    deps: { ledger: engine.ledger, notes, shared: cached(dataDir), dataDir, readLagMs: 0, concurrency: 1 },
    plan: plan as ImportPlan,
    billing: clientOf(sandbox),
    signal: new AbortController().signal,
    onFinding: () => {},
  })
  await expect(auditing).rejects.toMatchObject({ code })
})
